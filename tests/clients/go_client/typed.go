package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// A kindCase is one line of input: an object, and the resource it belongs to. An empty namespace is for cluster-scoped kinds.
type kindCase struct {
	Resource  string          `json:"resource"`
	Namespace string          `json:"namespace"`
	Object    json.RawMessage `json:"object"`
}

// typed sends each object through every verb. Protobuf is all that it sends (but for patches) and all that it accepts.
func typed() error {
	base, err := config()
	if err != nil {
		return err
	}
	all, failures := kinds(), []error(nil)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one kindCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return err
		}
		if err := one.run(base, all); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", one.Resource, err))
			continue
		}
		fmt.Println(one.Resource)
	}
	return errors.Join(append(failures, lines.Err())...)
}

func (c kindCase) run(base *rest.Config, all *runtime.Scheme) error {
	codecs := serializer.NewCodecFactory(all)
	wanted, gvk, err := codecs.UniversalDeserializer().Decode(c.Object, nil, nil)
	if err != nil {
		return err
	}
	client, err := restClient(base, codecs, gvk.GroupVersion())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	verbs := &verbs{c: c, client: client, all: all, gvk: *gvk, ctx: ctx}
	return verbs.everything(wanted)
}

func restClient(base *rest.Config, codecs serializer.CodecFactory, gv schema.GroupVersion) (*rest.RESTClient, error) {
	own := rest.CopyConfig(base)
	own.GroupVersion, own.APIPath = &gv, "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	own.NegotiatedSerializer = codecs.WithoutConversion()
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	return rest.RESTClientFor(own)
}

// verbs are those of one kind.
type verbs struct {
	c      kindCase
	client *rest.RESTClient
	all    *runtime.Scheme
	gvk    schema.GroupVersionKind
	ctx    context.Context
}

func (v *verbs) on(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(v.c.Namespace, v.c.Namespace != "").Resource(v.c.Resource)
}

func (v *verbs) do(request *rest.Request) (runtime.Object, error) {
	found, err := v.all.New(v.gvk)
	if err != nil {
		return nil, err
	}
	return found, v.on(request).Do(v.ctx).Into(found)
}

func (v *verbs) everything(wanted runtime.Object) error {
	name := accessor(wanted).GetName()
	listed, err := v.list()
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	options := &metav1.ListOptions{ResourceVersion: listed.GetResourceVersion(), AllowWatchBookmarks: true, Watch: true,
		FieldSelector: "metadata.name=" + name}
	watcher, err := v.on(v.client.Get()).VersionedParams(options, metav1.ParameterCodec).Watch(v.ctx)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()

	created, err := v.do(v.client.Post().Body(wanted))
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := v.seen(watcher, watch.Added, created); err != nil {
		return err
	}
	if _, err := v.do(v.client.Post().Body(wanted)); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create again: not refused as existing but: %v", err)
	}
	read, err := v.do(v.client.Get().Name(name))
	if err != nil || revision(read) == revision(created) && !equality.Semantic.DeepEqual(read, created) {
		return fmt.Errorf("get: %v; not what was created: %v", err, read)
	}
	if err := v.inList(name); err != nil {
		return err
	}
	updated, err := v.update(name)
	if err != nil || accessor(updated).GetLabels()["updated"] != "yes" {
		return fmt.Errorf("update: %v %v", err, updated)
	}
	if err := v.seen(watcher, watch.Modified, updated); err != nil {
		return err
	}
	patch := []byte(`{"metadata":{"labels":{"patched":"yes"}}}`)
	patched, err := v.do(v.client.Patch(types.MergePatchType).Name(name).Body(patch))
	if err != nil || accessor(patched).GetLabels()["patched"] != "yes" {
		return fmt.Errorf("patch: %v %v", err, patched)
	}
	if err := v.seen(watcher, watch.Modified, patched); err != nil {
		return err
	}
	none := int64(0)
	uid := accessor(patched).GetUID()
	deletion := &metav1.DeleteOptions{GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := v.on(v.client.Delete()).Name(name).Body(deletion).Do(v.ctx).Error(); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return v.goes(watcher, name)
}

// update reads and writes until nobody else, such as a controller, writes in between.
func (v *verbs) update(name string) (runtime.Object, error) {
	for {
		read, err := v.do(v.client.Get().Name(name))
		if err != nil {
			return nil, err
		}
		accessor(read).SetLabels(map[string]string{"updated": "yes"})
		updated, err := v.do(v.client.Put().Name(name).Body(read))
		if !apierrors.IsConflict(err) {
			return updated, err
		}
	}
}

// goes waits for the last event, helping where a finalizer is in the way that no controller is there to remove.
func (v *verbs) goes(watcher watch.Interface, name string) error {
	if found, err := v.do(v.client.Get().Name(name)); err == nil && v.c.Resource == "namespaces" {
		found.(*corev1.Namespace).Spec.Finalizers = nil
		if _, err := v.do(v.client.Put().Name(name).SubResource("finalize").Body(found)); err != nil {
			return fmt.Errorf("finalize: %w", err)
		}
	} else if found, err := v.do(v.client.Get().Name(name)); err == nil && len(accessor(found).GetFinalizers()) > 0 {
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if _, err := v.do(v.client.Patch(types.MergePatchType).Name(name).Body(patch)); err != nil {
			return fmt.Errorf("patch of the finalizers: %w", err)
		}
	}
	for event := range watcher.ResultChan() {
		if event.Type == watch.Deleted {
			_, err := v.do(v.client.Get().Name(name))
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("get of what was deleted: %v", err)
			}
			return nil
		}
	}
	return errors.New("watch: ended without a deletion")
}

// seen reads on until an event shows this revision of the object, which must then be the same.
func (v *verbs) seen(watcher watch.Interface, kind watch.EventType, wanted runtime.Object) error {
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
		}
		if revision(event.Object) != revision(wanted) {
			continue
		}
		if event.Type == kind && equality.Semantic.DeepEqual(event.Object, wanted) {
			return nil
		}
		return fmt.Errorf("watch: %s %v instead of %s %v", event.Type, event.Object, kind, wanted)
	}
	return errors.New("watch: ended too early")
}

func (v *verbs) list() (metav1.ListInterface, error) {
	found, err := v.all.New(v.gvk.GroupVersion().WithKind(v.gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	if err := v.on(v.client.Get()).Do(v.ctx).Into(found); err != nil {
		return nil, err
	}
	return meta.ListAccessor(found)
}

func (v *verbs) inList(name string) error {
	listed, err := v.list()
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	items, err := meta.ExtractList(listed.(runtime.Object))
	if err != nil {
		return err
	}
	for _, item := range items {
		if accessor(item).GetName() == name {
			return nil
		}
	}
	return fmt.Errorf("list: %s is not among %d items", name, len(items))
}

func revision(object runtime.Object) string {
	return accessor(object).GetResourceVersion()
}

func accessor(object runtime.Object) metav1.Object {
	found, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return found
}
