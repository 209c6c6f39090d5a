//! kube-rs against the server that KUBECONFIG names: a custom resource defined, applied, patched, watched and deleted.

mod mirror;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{watcher, WatchStreamExt};
use kube::{Client, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "rust.example.com", version = "v1", kind = "Widget", namespaced, status = "WidgetStatus")]
struct WidgetSpec {
    size: i32,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
struct WidgetStatus {
    ready: bool,
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let client = Client::try_default().await?;
    if std::env::args().nth(1).as_deref() == Some("mirror") {
        mirror::mirror(client).await;
        return Ok(());
    }
    config_maps(client.clone()).await?;
    custom_resources(client).await?;
    println!("kube-rs: ok");
    Ok(())
}

async fn config_maps(client: Client) -> Outcome {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let made: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "rust", "labels": {"by": "rust"}}, "data": {"k": "v"}}))?;
    let created = api.create(&PostParams::default(), &made).await?;
    api.patch("rust", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "w"}}))).await?;
    api.patch("rust", &PatchParams::default(), &Patch::Strategic(json!({"data": {"s": "t"}}))).await?;
    let conflict = api.replace("rust", &PostParams::default(), &created).await.unwrap_err();
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"), "{conflict:?}");

    let since = created.resource_version().unwrap();
    let mut events = api.watch(&WatchParams::default().labels("by=rust").timeout(5), &since).await?.boxed();
    for (key, value) in [("k", "w"), ("s", "t")] {
        match events.try_next().await? {
            Some(WatchEvent::Modified(seen)) => assert_eq!(seen.data.unwrap()[key], value),
            other => panic!("expected a modification, got {other:?}"),
        }
    }
    assert_eq!(api.list(&ListParams::default().labels("by=rust")).await?.items.len(), 1);
    api.delete("rust", &DeleteParams::default()).await?;
    assert!(api.get_opt("rust").await?.is_none());
    Ok(())
}

async fn custom_resources(client: Client) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("rust").force();
    definitions.patch("widgets.rust.example.com", &apply, &Patch::Apply(Widget::crd())).await?;
    await_condition(definitions, "widgets.rust.example.com", conditions::is_crd_established()).await?;

    let api: Api<Widget> = Api::default_namespaced(client);
    let mut seen = watcher(api.clone(), watcher::Config::default().streaming_lists())
        .default_backoff()
        .touched_objects()
        .boxed();

    let widget = Widget::new("one", WidgetSpec { size: 1 });
    api.patch("one", &apply, &Patch::Apply(&widget)).await?;
    api.patch_status("one", &PatchParams::default(), &Patch::Merge(json!({"status": {"ready": true}}))).await?;
    while let Some(widget) = seen.try_next().await? {
        if widget.status.is_some_and(|status| status.ready) {
            break;
        }
    }
    let refused = api.patch("one", &apply, &Patch::Apply(json!({
        "apiVersion": "rust.example.com/v1", "kind": "Widget", "spec": {"size": "big"}
    }))).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422 || status.code == 500), "{refused:?}");
    api.delete("one", &DeleteParams::default()).await?;
    Ok(())
}
