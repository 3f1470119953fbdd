package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Asks a question in both forms and compares the answers.
func (c clients) answers(ctx context.Context, kind resource, sample object) error {
	p, err := c.pair(kind)
	if err != nil {
		return err
	}
	return settle(ctx, func() error {
		text, binary := p.empty(), p.empty()
		if err := p.at(p.text.Post()).Body(sample).Do(ctx).Into(text); err != nil {
			return fmt.Errorf("ask as JSON: %w", err)
		}
		if err := p.at(p.binary.Post()).Body(sample).Do(ctx).Into(binary); err != nil {
			return fmt.Errorf("ask: %w", err)
		}
		return same("POST", unchosen(text), unchosen(binary))
	})
}

// What is a kind of its own and a part of an object, or a verb of its own.
var parts = []struct {
	name string
	step func(context.Context, clients) error
}{
	{"scale", scale}, {"binding and eviction", bind}, {"token", token}, {"status", status},
	{"deletion of a collection", collection}, {"refusals", refusals},
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"part": "scale"}},
		Spec:       podSpec(),
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}}
}

func scale(ctx context.Context, c clients) error {
	apps, err := c.of(c.protobuf, appsv1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "part"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: template().Labels},
			Template: template(),
		},
	}
	at := func(request *rest.Request) *rest.Request {
		return request.Namespace(namespace).Resource("deployments")
	}
	if err := at(apps.Post()).Body(deployment).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create a deployment: %w", err)
	}
	var scale autoscalingv1.Scale
	if err := at(apps.Get()).Name("part").SubResource("scale").Do(ctx).Into(&scale); err != nil {
		return fmt.Errorf("read the scale: %w", err)
	}
	if scale.Spec.Replicas != 1 || scale.Status.Selector != "part=scale" {
		return fmt.Errorf("the scale says %+v", scale)
	}
	scale.Spec.Replicas = 3
	if err := at(apps.Put()).Name("part").SubResource("scale").Body(&scale).Do(ctx).Into(&scale); err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	if scale.Spec.Replicas != 3 {
		return fmt.Errorf("scaled to %d", scale.Spec.Replicas)
	}
	return at(apps.Delete()).Name("part").Body(&metav1.DeleteOptions{}).Do(ctx).Error()
}

func bind(ctx context.Context, c clients) error {
	core, err := c.of(c.protobuf, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: podSpec()}
	at := func(request *rest.Request) *rest.Request {
		return request.Namespace(namespace).Resource("pods")
	}
	if err := at(core.Post()).Body(pod).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create a pod: %w", err)
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "elsewhere"},
	}
	if err := at(core.Post()).Name("bound").SubResource("binding").Body(binding).Do(ctx).Error(); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := at(core.Get()).Name("bound").Do(ctx).Into(pod); err != nil {
		return fmt.Errorf("read the bound pod: %w", err)
	}
	if pod.Spec.NodeName != "elsewhere" {
		return errors.New("the pod was not bound")
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "bound"}}
	if err := at(core.Post()).Name("bound").SubResource("eviction").Body(eviction).Do(ctx).Error(); err != nil {
		return fmt.Errorf("evict: %w", err)
	}
	return nil
}

func token(ctx context.Context, c clients) error {
	core, err := c.of(c.protobuf, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	at := func(request *rest.Request) *rest.Request {
		return request.Namespace(namespace).Resource("serviceaccounts")
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "part"}}
	if err := at(core.Post()).Body(account).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create an account: %w", err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := at(core.Post()).Name("part").SubResource("token").Body(request).Do(ctx).Into(request); err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	if request.Status.Token == "" || request.Status.ExpirationTimestamp.IsZero() {
		return errors.New("there is no token in the answer")
	}
	return nil
}

func status(ctx context.Context, c clients) error {
	core, err := c.of(c.protobuf, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	at := func(request *rest.Request) *rest.Request { return request.Resource("nodes") }
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "part"}}
	if err := at(core.Post()).Body(node).Do(ctx).Into(node); err != nil {
		return fmt.Errorf("create a node: %w", err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := at(core.Put()).Name("part").SubResource("status").Body(node).Do(ctx).Into(node); err != nil {
		return fmt.Errorf("write a status: %w", err)
	}
	if len(node.Status.Conditions) != 1 || node.Status.Conditions[0].Status != corev1.ConditionTrue {
		return fmt.Errorf("the status says %+v", node.Status)
	}
	return at(core.Delete()).Name("part").Body(&metav1.DeleteOptions{}).Do(ctx).Error()
}

var configMaps = resource{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), plural: "configmaps", namespaced: true,
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"part": "many"}}}
}

func collection(ctx context.Context, c clients) error {
	p, err := c.pair(configMaps)
	if err != nil {
		return err
	}
	for _, name := range []string{"one", "two"} {
		if err := p.post(p.binary, configMap(name)).Do(ctx).Error(); err != nil {
			return fmt.Errorf("create: %w", err)
		}
	}
	all := p.at(p.binary.Delete()).Param("labelSelector", "part=many").Body(&metav1.DeleteOptions{})
	if err := all.Do(ctx).Error(); err != nil {
		return err
	}
	var left corev1.ConfigMapList
	err = p.at(p.binary.Get()).Param("labelSelector", "part=many").Do(ctx).Into(&left)
	if err == nil && len(left.Items) > 0 {
		err = fmt.Errorf("%d are left", len(left.Items))
	}
	return err
}

func refusals(ctx context.Context, c clients) error {
	p, err := c.pair(configMaps)
	if err != nil {
		return err
	}
	held := configMap("held")
	if err := p.post(p.binary, held).Do(ctx).Error(); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for reason, ask := range map[metav1.StatusReason]func(*rest.RESTClient) *rest.Request{
		metav1.StatusReasonAlreadyExists: func(client *rest.RESTClient) *rest.Request {
			return p.post(client, held)
		},
		metav1.StatusReasonInvalid: func(client *rest.RESTClient) *rest.Request {
			return p.post(client, configMap("No Name"))
		},
		metav1.StatusReasonConflict: func(client *rest.RESTClient) *rest.Request {
			stale := held.DeepCopy()
			stale.ResourceVersion = "1"
			return p.at(client.Put()).Name("held").Body(stale)
		},
		metav1.StatusReasonBadRequest: func(client *rest.RESTClient) *rest.Request {
			return p.at(client.Put()).Name("other").Body(held)
		},
		metav1.StatusReasonMethodNotAllowed: func(client *rest.RESTClient) *rest.Request {
			return p.at(client.Put()).Body(held)
		},
	} {
		err := p.refuses(reason, func(client *rest.RESTClient) error { return ask(client).Do(ctx).Error() })
		if err != nil {
			return err
		}
	}
	return nil
}
