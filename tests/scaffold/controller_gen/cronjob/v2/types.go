// +kubebuilder:object:generate=true
// +groupName=batch.tutorial.kubebuilder.io
package v2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type CronJobSpec struct {
	// +required
	Schedule CronSchedule `json:"schedule"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// +optional
	// +kubebuilder:default:=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

type CronJobStatus struct {
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type CronJob struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// +required
	Spec CronJobSpec `json:"spec"`
	// +optional
	Status CronJobStatus `json:"status,omitempty,omitzero"`
}

type CronSchedule struct {
	// +optional
	Minute *CronField `json:"minute,omitempty"`
	// +optional
	Hour *CronField `json:"hour,omitempty"`
	// +optional
	DayOfMonth *CronField `json:"dayOfMonth,omitempty"`
	// +optional
	Month *CronField `json:"month,omitempty"`
	// +optional
	DayOfWeek *CronField `json:"dayOfWeek,omitempty"`
}

type CronField string
