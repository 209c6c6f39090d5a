import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.stream.Collectors;

/** Runs an informer of ConfigMaps. For each line of its input it prints what the cache holds: names and resourceVersions. */
public class Mirror {
  public static void main(String[] arguments) throws Exception {
    KubernetesClient client = new KubernetesClientBuilder().build();
    SharedIndexInformer<ConfigMap> informer = client.configMaps().inNamespace("default").runnableInformer(0);
    informer.exceptionHandler((isStarted, error) -> true);
    informer.start();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      System.out.println(informer.getStore().list().stream()
          .map(held -> '"' + held.getMetadata().getName() + "\": \"" + held.getMetadata().getResourceVersion() + '"')
          .collect(Collectors.joining(", ", "{", "}")));
    }
    System.exit(0);
  }
}
