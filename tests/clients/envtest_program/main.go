// A small envtest: starts a control plane from KUBEBUILDER_ASSETS, uses it as tests of an operator do, and tells what it saw
// as one line of JSON. With -hold it then waits for a signal (or to be killed) and stops the control plane.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Report is what the test compares.
type Report struct {
	URL          string `json:"url"`
	Cached       string `json:"cached"`       // a ConfigMap's value, as the cache's watch brought it
	Custom       int64  `json:"custom"`       // a custom resource's defaulted field
	Forbidden    bool   `json:"forbidden"`    // whether a user without rights was refused
	KubectlSays  string `json:"kubectlSays"`  // what the kubectl among the assets printed; "" without one
	ControlPlane string `json:"controlPlane"` // the kube-apiserver that was started
}

func main() {
	hold := flag.Bool("hold", false, "wait for a signal before stopping")
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(*hold); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(hold bool) (err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()}}
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer func() {
		if stopErr := environment.Stop(); err == nil && stopErr != nil {
			err = fmt.Errorf("stop: %w", stopErr)
		}
	}()
	report, err := use(context.Background(), environment, config)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	if hold {
		<-signals
	}
	return nil
}

func use(ctx context.Context, environment *envtest.Environment, config *rest.Config) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	report := &Report{URL: config.Host, ControlPlane: environment.ControlPlane.APIServer.Path}
	steps := []func(context.Context, *envtest.Environment, *rest.Config, *Report) error{cached, custom, forbidden, kubectl}
	for _, step := range steps {
		if err := step(ctx, environment, config, report); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// cached writes through the client and reads what the informer was told.
func cached(ctx context.Context, _ *envtest.Environment, config *rest.Config, report *Report) error {
	writer, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	reader, err := cache.New(config, cache.Options{})
	if err != nil {
		return err
	}
	go func() { _ = reader.Start(ctx) }()
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-", Namespace: "default"},
		Data:       map[string]string{"mode": "on"},
	}
	if err := writer.Create(ctx, configMap); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if !reader.WaitForCacheSync(ctx) {
		return fmt.Errorf("the cache did not sync")
	}
	found := &corev1.ConfigMap{}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(configMap), found); err != nil {
		return fmt.Errorf("cached get: %w", err)
	}
	report.Cached = found.Data["mode"]
	return writer.Delete(ctx, configMap)
}

func custom(ctx context.Context, _ *envtest.Environment, config *rest.Config, report *Report) error {
	all, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "default"},
		"spec":     map[string]any{},
	}}
	if err := all.Create(ctx, widget); err != nil {
		return fmt.Errorf("create widget: %w", err)
	}
	report.Custom, _, err = unstructured.NestedInt64(widget.Object, "spec", "size")
	return err
}

func forbidden(ctx context.Context, environment *envtest.Environment, _ *rest.Config, report *Report) error {
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"guests"}}, nil)
	if err != nil {
		return err
	}
	jane, err := client.New(user.Config(), client.Options{})
	if err != nil {
		return err
	}
	report.Forbidden = apierrors.IsForbidden(jane.List(ctx, &corev1.SecretList{}))
	return nil
}

func kubectl(_ context.Context, environment *envtest.Environment, _ *rest.Config, report *Report) error {
	if _, err := os.Stat(environment.ControlPlane.KubectlPath); err != nil {
		return nil
	}
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	program, err := user.Kubectl()
	if err != nil {
		return err
	}
	out, errors, err := program.Run("get", "namespace", "default", "-o", "name")
	if err != nil {
		return fmt.Errorf("kubectl: %w: %s", err, errors)
	}
	_, err = fmt.Fscanln(out, &report.KubectlSays)
	return err
}

func widgets() *apiextensionsv1.CustomResourceDefinition {
	integer := apiextensionsv1.JSONSchemaProps{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}}
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": integer}}
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
			}},
		},
	}
}
