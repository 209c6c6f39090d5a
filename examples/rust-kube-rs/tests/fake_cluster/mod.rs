//! Starts `fakeapiserver serve` for tests. Copy this file; it needs kube, http and serde_json.
//!
//! From `start` on, KUBECONFIG leads the clients of this process to the fake cluster, and after `close` to no cluster: never to
//! ~/.kube/config. The server ends with this process, also if it is killed.
#![allow(dead_code)] // each test uses a part of it

use std::error::Error;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{json, Value};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A server that runs until `close`, until it is dropped, or until this process ends.
pub struct FakeCluster {
    pub url: String,
    /// The path of a file.
    pub kubeconfig: String,
    pub token: String,
    /// The authority's certificate, in PEM.
    pub ca: String,
    process: Child,
}

impl FakeCluster {
    /// Runs the server on a free port and returns when it is ready. The flags are those of `fakeapiserver serve`, such as "--nodes=1".
    /// The variable FAKEAPISERVER names another command than the fakeapiserver on the PATH.
    pub fn start(flags: &[&str]) -> Outcome<FakeCluster> {
        lead_nowhere();
        let command = std::env::var("FAKEAPISERVER").unwrap_or("fakeapiserver".into());
        let spawned = Command::new(&command)
            .args(["serve", "--output=json", "--stop-with-stdin"])
            .args(flags)
            .stdin(Stdio::piped()) // the system closes it when this process ends
            .stdout(Stdio::piped())
            .spawn();
        let process = match spawned {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!("there is no command {command}: pip install fakeapiserver, or name it in FAKEAPISERVER").into())
            }
            other => other?,
        };
        let empty = String::new;
        // dropped, and so stopped, if what follows fails
        let mut cluster = FakeCluster { url: empty(), kubeconfig: empty(), token: empty(), ca: empty(), process };
        let facts: Value = serde_json::from_str(&cluster.first_line()?)?;
        let field = |name: &str| facts[name].as_str().map(String::from).ok_or(format!("fakeapiserver serve printed no {name}"));
        cluster.url = check_loopback(field("url")?)?;
        cluster.kubeconfig = field("kubeconfig")?;
        cluster.token = std::fs::read_to_string(field("tokenFile")?)?;
        cluster.ca = std::fs::read_to_string(field("caFile")?)?;
        std::env::set_var("KUBECONFIG", &cluster.kubeconfig);
        Ok(cluster)
    }

    fn first_line(&mut self) -> Outcome<String> {
        let stdout = self.process.stdout.take().ok_or("no standard output")?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        match receiver.recv_timeout(START_TIMEOUT) {
            Ok(line) if !line.is_empty() => Ok(line),
            _ => Err("fakeapiserver serve did not start; its message is on standard error".into()),
        }
    }

    /// A client of the cluster.
    pub async fn client(&self) -> Outcome<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        Ok(Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)?)
    }

    /// Moves the server's clock, such as by "1h": what is due meanwhile happens, each thing at its time.
    pub async fn advance(&self, duration: &str) -> Outcome<()> {
        self.control("PUT", "clock", json!({"advance": duration}).to_string()).await
    }

    /// Waits until the server's controllers are at rest.
    pub async fn settle(&self) -> Outcome<()> {
        self.control("POST", "settle", String::new()).await
    }

    /// Lets requests fail: {"verb": "update", "resource": "configmaps", "status": 409, "times": 1}; docs/faults.md has all fields.
    pub async fn fault(&self, fault: Value) -> Outcome<()> {
        self.control("POST", "faults", fault.to_string()).await
    }

    async fn control(&self, method: &str, path: &str, body: String) -> Outcome<()> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/fakeapiserver/{path}"))
            .header("Content-Type", "application/json")
            .body(body.into_bytes())?;
        self.client().await?.request_text(request).await?;
        Ok(())
    }

    /// Stops the server. KUBECONFIG goes on naming a file that is gone.
    pub fn close(self) {}
}

impl Drop for FakeCluster {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let deadline = Instant::now() + STOP_TIMEOUT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps clients from a real cluster: also if the server doesn't start.
fn lead_nowhere() {
    std::env::remove_var("KUBERNETES_SERVICE_HOST");
    std::env::remove_var("KUBERNETES_SERVICE_PORT");
    std::env::set_var("KUBECONFIG", std::env::temp_dir().join("no-cluster-outside-of-FakeCluster"));
}

/// Returns the URL, or an error if its server isn't on this machine.
pub fn check_loopback(url: String) -> Outcome<String> {
    let uri: http::Uri = url.parse()?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => Ok(url),
        _ => Err(format!("{url} is not on this machine: FakeCluster uses servers on loopback addresses only").into()),
    }
}
