import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** fabric8's client: it watches over WebSockets, and its informers do. */
public class Main {
  private static final BlockingQueue<String> SEEN = new LinkedBlockingQueue<>();

  public static void main(String[] arguments) throws Exception {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      watch(client);
      inform(client);
    }
    System.out.println("fabric8: ok");
    System.exit(0);
  }

  private static void watch(KubernetesClient client) throws Exception {
    Watcher<ConfigMap> watcher = new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap found) {
        SEEN.add(action + " " + found.getMetadata().getName() + " " + found.getData());
      }

      @Override
      public void onClose(WatcherException cause) {
        SEEN.add("closed " + cause);
      }
    };
    try (Watch open = client.configMaps().inNamespace("default").withLabel("by", "java").watch(watcher)) {
      client.resource(configMap("1")).inNamespace("default").create();
      expect("ADDED java {k=1}");
      client.configMaps().inNamespace("default").withName("java").edit(found -> configMap("2"));
      expect("MODIFIED java {k=2}");
      client.configMaps().inNamespace("default").withName("java").delete();
      expect("DELETED java {k=2}");
    }
    SEEN.clear();
  }

  private static void inform(KubernetesClient client) throws Exception {
    SharedIndexInformer<ConfigMap> informer = client.configMaps().inNamespace("default").withLabel("by", "java").inform(
        new ResourceEventHandler<>() {
          @Override
          public void onAdd(ConfigMap found) {
            SEEN.add("added " + found.getData());
          }

          @Override
          public void onUpdate(ConfigMap old, ConfigMap found) {
            SEEN.add("updated " + found.getData());
          }

          @Override
          public void onDelete(ConfigMap found, boolean unknown) {
            SEEN.add("deleted " + found.getData());
          }
        });
    client.resource(configMap("3")).inNamespace("default").serverSideApply();
    expect("added {k=3}");
    client.resource(configMap("4")).inNamespace("default").serverSideApply();
    expect("updated {k=4}");
    List<ConfigMap> cached = informer.getStore().list();
    if (cached.size() != 1) {
      throw new IllegalStateException("the informer holds " + cached);
    }
    client.resource(configMap("4")).inNamespace("default").delete();
    expect("deleted {k=4}");
    informer.close();
  }

  private static ConfigMap configMap(String value) {
    return new ConfigMapBuilder()
        .withNewMetadata().withName("java").addToLabels("by", "java").endMetadata()
        .addToData("k", value)
        .build();
  }

  private static void expect(String event) throws InterruptedException {
    String found = SEEN.poll(20, TimeUnit.SECONDS);
    if (!event.equals(found)) {
      throw new IllegalStateException("expected " + event + ", got " + found);
    }
  }
}
