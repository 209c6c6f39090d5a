package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "go.example.com", Version: "v1", Resource: "widgets"}
	configMaps  = corev1.SchemeGroupVersion.WithResource("configmaps")
)

const namespace = "default"

// A counter tells how informers began: with a stream of what there is, or with a list.
type counter struct {
	next           http.RoundTripper
	streams, lists atomic.Int32
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	query, path := request.URL.Query(), request.URL.Path
	collection := strings.HasSuffix(path, "/"+configMaps.Resource) || strings.HasSuffix(path, "/"+widgets.Resource)
	if query.Get("sendInitialEvents") == "true" {
		c.streams.Add(1)
	} else if request.Method == http.MethodGet && query.Get("watch") == "" && collection {
		c.lists.Add(1)
	}
	return c.next.RoundTrip(request)
}

// informed runs client-go's typed, dynamic and metadata clients, each with its informers, on the same objects.
func informed() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	base, err := config()
	if err != nil {
		return err
	}
	plain, err := dynamic.NewForConfig(base)
	if err != nil {
		return err
	}
	if err := define(ctx, plain); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	counted := &counter{}
	base.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	for _, step := range []func(context.Context, *rest.Config) error{typedInformer, dynamicInformer, metadataInformer} {
		if err := step(ctx, base); err != nil {
			return err
		}
	}
	if streams, lists := counted.streams.Load(), counted.lists.Load(); streams != 3 || lists != 0 {
		return fmt.Errorf("%d informers began with a stream and %d with a list, instead of 3 and 0", streams, lists)
	}
	return nil
}

func define(ctx context.Context, all dynamic.Interface) error {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	version := map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": open},
		"subresources": map[string]any{"status": map[string]any{}}}
	names := map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
	spec := map[string]any{"group": widgets.Group, "scope": "Namespaced", "names": names, "versions": []any{version}}
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.go.example.com", map[string]any{"spec": spec})
	if _, err := all.Resource(definitions).Create(ctx, definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, "the definition", func() (bool, error) {
		found, err := all.Resource(definitions).Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions") // null at first
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
}

// typedInformer speaks protobuf, as controllers of Kubernetes do.
func typedInformer(ctx context.Context, base *rest.Config) error {
	own := rest.CopyConfig(base)
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	all, err := kubernetes.NewForConfig(own)
	if err != nil {
		return err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "informed", Labels: map[string]string{"go": "typed"}}}
	if _, err := all.CoreV1().ConfigMaps(namespace).Create(ctx, configMap, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("typed create: %w", err)
	}
	informer := informers.NewSharedInformerFactory(all, 0).Core().V1().ConfigMaps().Informer()
	return follow(ctx, "typed", informer, func() error {
		configMap.Data = map[string]string{"k": "v"}
		_, err := all.CoreV1().ConfigMaps(namespace).Update(ctx, configMap, metav1.UpdateOptions{})
		return err
	}, func() error {
		return all.CoreV1().ConfigMaps(namespace).Delete(ctx, configMap.Name, metav1.DeleteOptions{})
	})
}

func dynamicInformer(ctx context.Context, base *rest.Config) error {
	all, err := dynamic.NewForConfig(base)
	if err != nil {
		return err
	}
	own := all.Resource(widgets).Namespace(namespace)
	widget := object("go.example.com/v1", "Widget", "informed", map[string]any{"spec": map[string]any{"size": int64(1)}})
	options := metav1.ApplyOptions{FieldManager: "go", Force: true}
	if _, err := own.Apply(ctx, widget.GetName(), widget, options); err != nil {
		return fmt.Errorf("dynamic apply: %w", err)
	}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(all, 0).ForResource(widgets).Informer()
	return follow(ctx, "dynamic", informer, func() error {
		status := object("go.example.com/v1", "Widget", "informed", map[string]any{"status": map[string]any{"ready": true}})
		_, err := own.ApplyStatus(ctx, widget.GetName(), status, options)
		return err
	}, func() error {
		return own.Delete(ctx, widget.GetName(), metav1.DeleteOptions{})
	})
}

// metadataInformer sees metadata alone, as the garbage collector does.
func metadataInformer(ctx context.Context, base *rest.Config) error {
	all, err := metadata.NewForConfig(base)
	if err != nil {
		return err
	}
	writer, err := client.New(base, client.Options{})
	if err != nil {
		return err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "informed", Namespace: namespace}}
	if err := writer.Create(ctx, configMap); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	own := all.Resource(configMaps).Namespace(namespace)
	informer := metadatainformer.NewSharedInformerFactory(all, 0).ForResource(configMaps).Informer()
	return follow(ctx, "metadata", informer, func() error {
		_, err := own.Patch(ctx, configMap.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"go":"metadata"}}}`), metav1.PatchOptions{})
		return err
	}, func() error {
		return own.Delete(ctx, configMap.Name, metav1.DeleteOptions{})
	})
}

// follow starts an informer, and expects what there is, a change and a deletion of the object called informed.
func follow(ctx context.Context, what string, informer cache.SharedIndexInformer, change, remove func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	added, updated, deleted := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(found any) { tell(found, added) },
		UpdateFunc: func(_, found any) { tell(found, updated) },
		DeleteFunc: func(found any) { tell(found, deleted) },
	})
	if err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("%s: the cache did not sync", what)
	}
	steps := []struct {
		act   func() error
		heard chan struct{}
	}{{func() error { return nil }, added}, {change, updated}, {remove, deleted}}
	for i, step := range steps {
		if err := step.act(); err != nil {
			return fmt.Errorf("%s: step %d: %w", what, i, err)
		}
		select {
		case <-step.heard:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: the informer did not hear of step %d", what, i), ctx.Err())
		}
	}
	return nil
}

func tell(found any, heard chan<- struct{}) {
	if accessor(found.(runtime.Object)).GetName() != "informed" {
		return
	}
	select {
	case heard <- struct{}{}:
	default:
	}
}

func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	content["apiVersion"], content["kind"], content["metadata"] = apiVersion, kind, map[string]any{"name": name}
	return &unstructured.Unstructured{Object: content}
}
