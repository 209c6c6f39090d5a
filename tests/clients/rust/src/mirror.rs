//! Runs a reflector of ConfigMaps. For each line of its input it prints what the cache holds: names and resourceVersions.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::runtime::{reflector, watcher, WatchStreamExt};
use kube::{Client, ResourceExt};
use std::collections::BTreeMap;

pub async fn mirror(client: Client) {
    let (store, writer) = reflector::store();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lines() {
            let held: BTreeMap<_, _> =
                store.state().iter().map(|map: &std::sync::Arc<ConfigMap>| (map.name_any(), map.resource_version())).collect();
            println!("{}", serde_json::to_string(&held).unwrap());
        }
        std::process::exit(0);
    });
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    watcher(api, watcher::Config::default().streaming_lists())
        .default_backoff()
        .reflect(writer)
        .for_each(|_| std::future::ready(()))
        .await;
}
