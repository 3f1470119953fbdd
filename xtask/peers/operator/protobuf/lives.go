package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const changed = "peers.sundown.dev/changed"

// One kind, with both clients.
type pair struct {
	kind         resource
	binary, text *rest.RESTClient
}

func (c clients) pair(kind resource) (pair, error) {
	binary, err := c.of(c.protobuf, kind.GroupVersion())
	if err != nil {
		return pair{}, err
	}
	text, err := c.of(c.json, kind.GroupVersion())
	return pair{kind, binary, text}, err
}

func (p pair) at(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(namespace, p.kind.namespaced).Resource(p.kind.plural)
}

func (p pair) empty() object {
	made, err := types.New(p.kind.GroupVersionKind)
	if err != nil {
		panic(err)
	}
	return made.(object)
}

func (p pair) emptyList() runtime.Object {
	made, err := types.New(p.kind.GroupVersion().WithKind(p.kind.Kind + "List"))
	if err != nil {
		panic(err)
	}
	return made
}

func (p pair) get(ctx context.Context, client *rest.RESTClient, name string) (object, error) {
	into := p.empty()
	return into, p.at(client.Get()).Name(name).Do(ctx).Into(into)
}

// The life of one object, by protobuf; after each step JSON says the same.
func (c clients) lives(ctx context.Context, kind resource, sample object) error {
	p, err := c.pair(kind)
	if err != nil {
		return err
	}
	name := sample.GetObjectMeta().GetName()
	events, err := p.watch(ctx)
	if err != nil {
		return err
	}
	defer events.Stop()
	expected, created := p.empty(), p.empty()
	if err := p.post(p.text, sample, metav1.DryRunAll).Do(ctx).Into(expected); err != nil {
		return fmt.Errorf("create as JSON: %w", err)
	}
	if err := p.post(p.binary, sample).Do(ctx).Into(created); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := same("POST", unchosen(expected), unchosen(created)); err != nil {
		return err
	}
	if err := p.shows(ctx, events, watch.Added, created); err != nil {
		return err
	}
	for _, change := range []func(context.Context, string) (object, error){p.update, p.patch} {
		changed, err := change(ctx, name)
		if err != nil {
			return err
		}
		if err := p.shows(ctx, events, watch.Modified, changed); err != nil {
			return err
		}
	}
	return p.ends(ctx, events, name)
}

// An event tells of the object, and every read says in protobuf what it says in JSON.
func (p pair) shows(ctx context.Context, events watch.Interface, kind watch.EventType, want object) error {
	name := want.GetObjectMeta().GetName()
	if err := p.event(ctx, events, kind, name, want); err != nil {
		return err
	}
	return p.isAsJSON(ctx, name)
}

// Watches from now on.
func (p pair) watch(ctx context.Context) (watch.Interface, error) {
	list := p.emptyList()
	if err := p.at(p.binary.Get()).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{ResourceVersion: metadata.GetResourceVersion(), Watch: true}
	request := p.at(p.binary.Get()).SpecificallyVersionedParams(&options, parameters, corev1.SchemeGroupVersion)
	events, err := request.Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return events, nil
}

func (p pair) post(client *rest.RESTClient, sample object, dryRun ...string) *rest.Request {
	options := metav1.CreateOptions{DryRun: dryRun}
	request := p.at(client.Post()).SpecificallyVersionedParams(&options, parameters, corev1.SchemeGroupVersion)
	return request.Body(sample)
}

// Reads one object and the list, whole and their metadata alone, in both forms.
func (p pair) isAsJSON(ctx context.Context, name string) error {
	reads := []struct {
		what, as string
		name     []string
		into     runtime.Object
	}{
		{"GET", "", []string{name}, p.empty()},
		{"LIST", "", nil, p.emptyList()},
		{"GET of metadata", "PartialObjectMetadata", []string{name}, &metav1.PartialObjectMetadata{}},
		{"LIST of metadata", "PartialObjectMetadataList", nil, &metav1.PartialObjectMetadataList{}},
	}
	return settle(ctx, func() error {
		for _, read := range reads {
			var answers []runtime.Object
			for _, from := range []source{{p.text, json}, {p.binary, protobuf}} {
				into := read.into.DeepCopyObject()
				request := p.at(from.client.Get()).SetHeader("Accept", from.accept(read.as))
				for _, name := range read.name {
					request = request.Name(name)
				}
				if err := request.Do(ctx).Into(into); err != nil {
					return fmt.Errorf("%s as %s: %w", read.what, from.form, err)
				}
				answers = append(answers, into)
			}
			if err := same(read.what, answers[0], answers[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// A client and the form of its answers.
type source struct {
	client *rest.RESTClient
	form   string
}

func (s source) accept(as string) string {
	if as == "" {
		return s.form
	}
	return s.form + ";as=" + as + ";g=meta.k8s.io;v=v1"
}

// Sends the object back as it was read, which changes nothing, then with an annotation.
func (p pair) update(ctx context.Context, name string) (object, error) {
	var updated object
	err := settle(ctx, func() error {
		read, err := p.get(ctx, p.binary, name)
		if err != nil {
			return fmt.Errorf("get: %w", err)
		}
		again := p.empty()
		if err := p.at(p.binary.Put()).Name(name).Body(read).Do(ctx).Into(again); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		if err := same("PUT", read, again); err != nil {
			return err
		}
		metadata := again.GetObjectMeta()
		metadata.SetAnnotations(map[string]string{changed: "yes"})
		updated = p.empty()
		if err := p.at(p.binary.Put()).Name(name).Body(again).Do(ctx).Into(updated); err != nil {
			return fmt.Errorf("update: %w", err)
		}
		if updated.GetObjectMeta().GetAnnotations()[changed] != "yes" {
			return errors.New("the update was not kept")
		}
		return nil
	})
	return updated, err
}

// Changes the annotation by a patch. Patches are JSON; only the answer has another form.
func (p pair) patch(ctx context.Context, name string) (object, error) {
	patched := p.empty()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"again"}}}`, changed)
	err := p.at(p.binary.Patch(apitypes.MergePatchType)).Name(name).Body([]byte(patch)).Do(ctx).Into(patched)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	if patched.GetObjectMeta().GetAnnotations()[changed] != "again" {
		return nil, errors.New("the patch was not kept")
	}
	return patched, nil
}

// Deletes it, sees it go, and reads why it cannot be read any more.
func (p pair) ends(ctx context.Context, events watch.Interface, name string) error {
	// Some kinds would otherwise leave their dependents to a collector, and wait for it.
	grace, policy := int64(0), metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{GracePeriodSeconds: &grace, PropagationPolicy: &policy}
	if err := p.at(p.binary.Delete()).Name(name).Body(options).Do(ctx).Error(); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := p.event(ctx, events, watch.Deleted, name, nil); err != nil {
		return err
	}
	return p.refuses(metav1.StatusReasonNotFound, func(client *rest.RESTClient) error {
		_, err := p.get(ctx, client, name)
		return err
	})
}

// Fails unless the server refuses for this reason, in the same words in both forms.
func (p pair) refuses(reason metav1.StatusReason, ask func(*rest.RESTClient) error) error {
	var said []metav1.Status
	for _, client := range []*rest.RESTClient{p.text, p.binary} {
		err := ask(client)
		var refusal apierrors.APIStatus
		if !errors.As(err, &refusal) || apierrors.ReasonForError(err) != reason {
			return fmt.Errorf("%s was expected, and came: %v", reason, err)
		}
		said = append(said, refusal.Status())
	}
	if said[1].Message == "" || !apiequality.Semantic.DeepEqual(said[0], said[1]) {
		return fmt.Errorf("%s differs (- JSON, + protobuf): %s", reason, cmp.Diff(said[0], said[1]))
	}
	return nil
}

// Waits for an event of this object. Others act on some kinds, and change them between.
func (p pair) event(ctx context.Context, events watch.Interface, kind watch.EventType, name string, want object) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("no %s event: %w", kind, ctx.Err())
		case event, ok := <-events.ResultChan():
			if !ok {
				return fmt.Errorf("the watch ended before %s", kind)
			}
			if event.Type == watch.Error {
				return fmt.Errorf("the watch ended: %w", apierrors.FromObject(event.Object))
			}
			seen, ok := event.Object.(object)
			if !ok {
				return fmt.Errorf("the watch brought a %T", event.Object)
			}
			metadata := seen.GetObjectMeta()
			if metadata.GetName() != name || event.Type != kind {
				continue
			}
			if want == nil {
				return nil
			}
			if metadata.GetResourceVersion() == want.GetObjectMeta().GetResourceVersion() {
				return same("WATCH", want, seen)
			}
		}
	}
}

// What an object says of its type is in the envelope of its message, and of an embedded one in none.
var (
	untyped = func(_, _ metav1.TypeMeta) bool { return true }
	equal   = func() conversion.Equalities {
		equal := apiequality.Semantic.Copy()
		if err := equal.AddFunc(untyped); err != nil {
			panic(err)
		}
		return equal
	}()
)

// Fails if two objects differ.
func same(what string, text, binary runtime.Object) error {
	if equal.DeepEqual(text, binary) {
		return nil
	}
	return fmt.Errorf("%s differs (- JSON, + protobuf): %s", what, cmp.Diff(text, binary, cmp.Comparer(untyped)))
}

// An object without what the server chooses for each one anew.
func unchosen(of object) object {
	of = of.DeepCopyObject().(object)
	metadata := of.GetObjectMeta()
	metadata.SetUID("")
	metadata.SetResourceVersion("")
	metadata.SetCreationTimestamp(metav1.Time{})
	switch own := of.(type) {
	case *corev1.Service:
		own.Spec.ClusterIP, own.Spec.ClusterIPs = "", nil
	case *corev1.PersistentVolume:
		own.Status.LastPhaseTransitionTime = nil
	case *apiextensions.CustomResourceDefinition:
		own.Status = apiextensions.CustomResourceDefinitionStatus{}
	case *batchv1.Job:
		own.Spec.Selector = nil
		for _, labels := range []map[string]string{own.Labels, own.Spec.Template.Labels} {
			delete(labels, batchv1.ControllerUidLabel)
			delete(labels, "controller-uid")
		}
	}
	return of
}

// Repeats a comparison that a write of another came between.
func settle(ctx context.Context, step func() error) error {
	var err error
	for try := 0; try < 20 && ctx.Err() == nil; try++ {
		if err = step(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
