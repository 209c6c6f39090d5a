import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;

/** The operator written with fabric8: an informer, a queue and a thread that takes websites from it. */
public class Operator {
  static final String BUG = System.getenv().getOrDefault("BUG", "");
  static final String FINALIZER = "example.com/index";

  final KubernetesClient client = new KubernetesClientBuilder()
      .withConfig(new ConfigBuilder().withRequestRetryBackoffLimit(BUG.equals("outage") ? 0 : 10).build()).build();
  final LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>();
  final CountDownLatch probed = new CountDownLatch(1);

  public static void main(String[] arguments) throws InterruptedException {
    new Operator().run();
  }

  void run() throws InterruptedException {
    if (BUG.equals("outage")) {
      new Thread(this::probe).start();
      probed.await();
    }
    SharedIndexInformer<GenericKubernetesResource> informer =
        client.genericKubernetesResources("example.com/v1", "Website").inAnyNamespace().inform(new ResourceEventHandler<>() {
          @Override
          public void onAdd(GenericKubernetesResource site) {
            queue.add(key(site));
          }

          @Override
          public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource site) {
            queue.add(key(site));
          }

          @Override
          public void onDelete(GenericKubernetesResource site, boolean unknown) {}
        });
    while (true) {
      String key = queue.take();
      GenericKubernetesResource site = informer.getStore().getByKey(key);
      try {
        if (site != null) {
          reconcile(site);
        }
      } catch (KubernetesClientException error) {
        Thread.sleep(100);
        queue.add(key);
      }
    }
  }

  static String key(GenericKubernetesResource site) {
    return site.getMetadata().getNamespace() + "/" + site.getMetadata().getName();
  }

  void reconcile(GenericKubernetesResource site) {
    if (site.getMetadata().getDeletionTimestamp() != null) {
      if (!BUG.equals("finalizer")) {
        changeIndex(site, null);
      }
      stored(site).edit(current -> withFinalizers(current, List.of()));
      return;
    }
    String title = site.get("spec", "title");
    if (title.equals(site.get("status", "title"))) {
      return;
    }
    stored(site).edit(current -> withFinalizers(current, List.of(FINALIZER)));
    writePage(site, title);
    changeIndex(site, title);
    stored(site).editStatus(current -> {
      current.setAdditionalProperty("status", Map.of("title", title));
      return current;
    });
  }

  Resource<GenericKubernetesResource> stored(GenericKubernetesResource site) {
    return client.genericKubernetesResources("example.com/v1", "Website")
        .inNamespace(site.getMetadata().getNamespace()).withName(site.getMetadata().getName());
  }

  static GenericKubernetesResource withFinalizers(GenericKubernetesResource site, List<String> finalizers) {
    site.getMetadata().setFinalizers(finalizers);
    return site;
  }

  void writePage(GenericKubernetesResource site, String title) {
    String name = site.getMetadata().getName(), namespace = site.getMetadata().getNamespace();
    ConfigMap page = new ConfigMapBuilder().withNewMetadata().withName(name + "-page").withNamespace(namespace)
        .addToLabels("site", name).endMetadata().addToData("title", title).build();
    if (BUG.equals("timeout")) {
      page.getMetadata().setName(null);
      page.getMetadata().setGenerateName(name + "-page-");
    }
    if (!BUG.equals("create")) {
      page.getMetadata().setOwnerReferences(List.of(new OwnerReferenceBuilder().withApiVersion("example.com/v1")
          .withKind("Website").withName(name).withUid(site.getMetadata().getUid()).withController(true).build()));
    }
    try {
      client.resource(page).create();
    } catch (KubernetesClientException error) {
      if (error.getCode() != 409) {
        throw error;
      }
      if (!BUG.equals("update")) {
        client.resource(page).patch();
      }
    }
  }

  /** Sets the website's row, or removes it if there is no title. */
  void changeIndex(GenericKubernetesResource site, String title) {
    ConfigMap index = client.configMaps().inNamespace(site.getMetadata().getNamespace()).withName("index").get();
    Map<String, String> data = new HashMap<>(index.getData() == null ? Map.of() : index.getData());
    if (title == null) {
      data.remove(site.getMetadata().getName());
    } else {
      data.put(site.getMetadata().getName(), title);
    }
    index.setData(data);
    try {
      client.resource(index).update();
    } catch (KubernetesClientException error) {
      if (!BUG.equals("conflict") || error.getCode() != 409) {
        throw error;
      }
    }
  }

  /** Ends the operator as soon as the server can't be reached. */
  void probe() {
    try {
      while (true) {
        client.configMaps().inNamespace("default").withName("index").get();
        probed.countDown();
        Thread.sleep(50);
      }
    } catch (KubernetesClientException | InterruptedException error) {
      System.exit(1);
    }
  }
}
