package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/randfill"
)

const (
	objectsPerKind = 5
	maxDepth       = 14 // JSON schemas nest without end
)

// encode prints {"object", "protobuf"} for random objects: what JSON and protobuf make of the same Go value.
func encode() error {
	all := kinds()
	codecs := serializer.NewCodecFactory(all)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), codecs).
		Funcs(
			func(raw *apiextensions.JSON, _ randfill.Continue) { raw.Raw = []byte(`{"a":[1,"b"]}`) },
			func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = []byte(`{"c":null}`) },
		).
		NilChance(0.4).NumElements(1, 2).MaxDepth(maxDepth)
	binary := protobuf.NewSerializer(all, all)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, gvk := range stable(all) {
		for range objectsPerKind {
			filled, err := all.New(gvk)
			if err != nil {
				return err
			}
			fill.Fill(filled)
			line, err := both(all, gvk, filled, binary)
			if err != nil {
				return fmt.Errorf("%s: %w", gvk, err)
			}
			fmt.Fprintf(out, "%s\n", line)
		}
	}
	return nil
}

func both(all *runtime.Scheme, gvk schema.GroupVersionKind, filled runtime.Object, binary runtime.Encoder) ([]byte, error) {
	filled.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(filled)
	if err != nil {
		return nil, err
	}
	// What JSON can't say is gone in the object read from it.
	object, err := all.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, object); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(object); err != nil {
		return nil, err
	}
	var data strings.Builder
	if err := binary.Encode(object, &data); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"object": json.RawMessage(text), "protobuf": base64.StdEncoding.EncodeToString([]byte(data.String())),
	})
}

// stable is every kind of a version that is served by default and has a message, in order.
func stable(all *runtime.Scheme) []schema.GroupVersionKind {
	var found []schema.GroupVersionKind
	for gvk := range all.AllKnownTypes() {
		object, err := all.New(gvk)
		_, encodes := object.(interface{ Marshal() ([]byte, error) })
		unstable := strings.ContainsAny(strings.TrimLeft(gvk.Version, "v"), "ab_") // alpha, beta, __internal
		if err == nil && encodes && !unstable && !strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "WatchEvent" {
			found = append(found, gvk)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}
