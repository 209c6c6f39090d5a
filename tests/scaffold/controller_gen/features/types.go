// +kubebuilder:object:generate=true
// +groupName=example.com
package v1

import (
	corev1 "k8s.io/api/core/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type Port struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int64 `json:"number"`
	// +optional
	Name string `json:"name,omitempty"`
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP
	// +optional
	Protocol string `json:"protocol,omitempty"`
}

// +kubebuilder:validation:XValidation:rule="self.low <= self.high",message="low is above high"
type Range struct {
	Low  int64 `json:"low"`
	High int64 `json:"high"`
}

// +kubebuilder:validation:ExactlyOneOf=git;image
type Source struct {
	// +optional
	Git *string `json:"git,omitempty"`
	// +optional
	Image *string `json:"image,omitempty"`
}

type Common struct {
	// +optional
	Paused bool `json:"paused,omitempty"`
}

type FeatSpec struct {
	Common `json:",inline"`
	Text   string `json:"text"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	Word string `json:"word"`
	// +optional
	Maybe *string `json:"maybe,omitempty"`
	// +optional
	// +nullable
	Nullable *string `json:"nullable,omitempty"`
	// +kubebuilder:default=3
	// +optional
	Count int32 `json:"count,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=true
	// +kubebuilder:validation:MultipleOf=5
	Positive int64 `json:"positive"`
	// +optional
	Ratio float64 `json:"ratio,omitempty"`
	// +listType=map
	// +listMapKey=number
	// +listMapKey=protocol
	// +optional
	Ports []Port `json:"ports,omitempty"`
	// +listType=set
	// +optional
	Tags []string `json:"tags,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Steps []string `json:"steps"`
	// +optional
	// +kubebuilder:validation:MaxProperties=7
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +mapType=atomic
	Limits map[string]resource.Quantity `json:"limits,omitempty"`
	// +optional
	Port intstr.IntOrString `json:"port,omitempty"`
	// +optional
	Memory resource.Quantity `json:"memory,omitempty"`
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// +optional
	Any apiext.JSON `json:"any,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Free runtime.RawExtension `json:"free,omitempty"`
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Object runtime.RawExtension `json:"object,omitempty"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="it can't be changed"
	Fixed string `json:"fixed"`
	// +optional
	Range *Range `json:"range,omitempty"`
	// +optional
	Source *Source `json:"source,omitempty"`
	// +optional
	// +structType=atomic
	Whole *Range `json:"whole,omitempty"`
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// +optional
	Matrix [][]int64 `json:"matrix,omitempty"`
	// +optional
	Nested map[string][]Port `json:"nested,omitempty"`
	// +kubebuilder:validation:Format=email
	// +optional
	Email string `json:"email,omitempty"`
	// +kubebuilder:validation:Enum=1;2;3
	// +optional
	Level int64 `json:"level,omitempty"`
}

type FeatStatus struct {
	// +optional
	Replicas int64 `json:"replicas,omitempty"`
	// +optional
	Selector string `json:"selector,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.count,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=feats,shortName=ft;fea,categories=all;mine,scope=Cluster,singular=feat
// +kubebuilder:printcolumn:name="Count",type=integer,JSONPath=`.spec.count`,format=int32,priority=1,description="how many"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.text`
// +kubebuilder:deprecatedversion:warning="use v2"
type Feat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FeatSpec `json:"spec"`
	// +optional
	Status FeatStatus `json:"status,omitempty"`
}
