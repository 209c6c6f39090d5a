//! A conflict is tried again.

mod fake_cluster;

use fake_cluster::{FakeCluster, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

#[tokio::test]
async fn a_conflict_is_tried_again() -> Outcome<()> {
    let cluster = FakeCluster::start(&["--controllers=none"])?;
    let client = cluster.client().await?;
    let counters: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let visitors = serde_json::from_value(json!({"metadata": {"name": "visitors"}}))?;
    counters.create(&PostParams::default(), &visitors).await?;
    assert_eq!(rust_kube_rs::raise(client.clone(), "visitors").await?, 1);

    cluster.fault(json!({"verb": "update", "resource": "configmaps", "status": 409, "times": 3})).await?;

    assert_eq!(rust_kube_rs::raise(client, "visitors").await?, 2);
    Ok(())
}
