//! A counter in a ConfigMap that several processes may raise at once.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::{Client, Error};

/// Adds one to the counter and returns the new number. Reads it again whenever another process was faster.
pub async fn raise(client: Client, name: &str) -> Result<u64, Error> {
    let counters: Api<ConfigMap> = Api::default_namespaced(client);
    loop {
        let mut counter = counters.get(name).await?;
        let data = counter.data.get_or_insert_default();
        let next = data.get("count").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) + 1;
        data.insert("count".into(), next.to_string());
        match counters.replace(name, &PostParams::default(), &counter).await {
            Ok(_) => return Ok(next),
            Err(Error::Api(status)) if status.code == 409 => continue,
            Err(error) => return Err(error),
        }
    }
}
