//! Tests of the helper. They change the process's environment, so they run one after the other, in one test.

mod fake_cluster;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fake_cluster::{check_loopback, FakeCluster, Outcome};
use serde_json::json;

#[tokio::test]
async fn the_helper() -> Outcome<()> {
    if std::env::var("FAKE_CLUSTER_TEST_CRASH").is_ok() {
        eprintln!("{}", FakeCluster::start(&["--controllers=none"])?.url);
        std::thread::sleep(Duration::from_secs(600));
    }
    ends_with_a_process_that_is_killed()?;
    is_used_and_stopped().await?;
    says_what_to_install();
    assert!(check_loopback("https://prod.example.com:6443".into()).is_err());
    assert!(check_loopback("https://127.0.0.1:6443".into()).is_ok());
    Ok(())
}

async fn is_used_and_stopped() -> Outcome<()> {
    let cluster = FakeCluster::start(&[])?;
    cluster.settle().await?;
    cluster.advance("1h").await?;
    cluster.fault(json!({"verb": "get", "status": 429, "times": 1})).await?;
    let refused = cluster.fault(json!({"verb": "fly"})).await.unwrap_err();
    assert!(refused.to_string().contains("fly"), "{refused}");
    assert_eq!(std::env::var("KUBECONFIG")?, cluster.kubeconfig);
    assert!(!cluster.token.is_empty() && cluster.ca.contains("CERTIFICATE"));
    let url = cluster.url.clone();
    cluster.close();
    wait_until_gone(&url);
    assert!(!Path::new(&std::env::var("KUBECONFIG")?).exists());
    Ok(())
}

/// This test again, in a process of its own, which is killed.
fn ends_with_a_process_that_is_killed() -> Outcome<()> {
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["the_helper", "--nocapture"])
        .env("FAKE_CLUSTER_TEST_CRASH", "yes")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(victim.stderr.take().ok_or("no standard error")?).lines();
    let url = lines.map_while(Result::ok).find(|line| line.starts_with("https://"));
    victim.kill()?;
    victim.wait()?;
    wait_until_gone(&url.ok_or("the server didn't start")?);
    Ok(())
}

fn says_what_to_install() {
    std::env::set_var("FAKEAPISERVER", "no-such-command");
    let error = FakeCluster::start(&[]).err().map(|error| error.to_string()).unwrap_or_default();
    std::env::remove_var("FAKEAPISERVER");
    assert!(error.contains("pip install fakeapiserver") && error.lines().count() == 1, "{error}");
    assert!(std::env::var("KUBECONFIG").unwrap_or_default().contains("no-cluster"));
}

fn wait_until_gone(url: &str) {
    let address = url.trim_start_matches("https://");
    for _ in 0..600 {
        if TcpStream::connect(address).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{url} is still there");
}
