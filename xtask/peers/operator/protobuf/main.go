// Command protobuf is a client that takes and sends nothing but protobuf. It shows that every built-in
// kind of the server can be created, read, listed, watched, changed and deleted by such a client, and
// that it reads of each object, and of each refusal, what a client of JSON reads.
//
// The kinds are those that discovery names; one without a sample is an error, so that a new kind is not
// forgotten. The samples are in samples.yaml. On a kube-apiserver, which is what it was tried on first,
// the controllers of namespaces and of the protection of volumes have to run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "peers"
	// Bounds a hang of one kind; it measures nothing.
	patience = time.Minute
)

// A resource that the server serves, as discovery tells it.
type resource struct {
	schema.GroupVersionKind
	plural     string
	namespaced bool
	verbs      map[string]bool
}

func (r resource) String() string {
	return r.GroupVersion().String() + " " + r.Kind
}

// Whether it is stored, rather than only asked.
func (r resource) isStored() bool {
	for _, verb := range []string{"create", "get", "list", "watch", "update", "delete"} {
		if !r.verbs[verb] {
			return false
		}
	}
	return true
}

// Kinds that are created only, and as a part of another object, as the steps in parts.go do.
var partKinds = map[string]bool{"Binding": true}

func served(config *rest.Config) ([]resource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	var found []resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, one := range list.APIResources {
			if strings.Contains(one.Name, "/") || partKinds[one.Kind] {
				continue
			}
			kind := resource{version.WithKind(one.Kind), one.Name, one.Namespaced, map[string]bool{}}
			for _, verb := range one.Verbs {
				kind.verbs[verb] = true
			}
			found = append(found, kind)
		}
	}
	return found, nil
}

func run(skipUnknown bool) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	clients := newClients(config)
	resources, err := served(config)
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	samples, err := readSamples()
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	var wrong []error
	try := func(what string, step func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := step(ctx); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", what, err))
		}
	}
	try("the namespace of the samples", clients.makeNamespace)
	var stored, asked int
	for _, kind := range resources {
		sample, ok := samples[kind.GroupVersionKind]
		switch {
		case !ok && skipUnknown:
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s is served, and there is no sample of it", kind))
		case kind.isStored():
			stored++
			try(kind.String(), func(ctx context.Context) error { return clients.lives(ctx, kind, sample) })
		default:
			asked++
			try(kind.String(), func(ctx context.Context) error { return clients.answers(ctx, kind, sample) })
		}
	}
	for _, part := range parts {
		try(part.name, func(ctx context.Context) error { return part.step(ctx, clients) })
	}
	wrong = append(wrong, clients.forms.wrong()...)
	fmt.Printf("%d stored kinds, %d reviews and %d parts of objects in %d answers\n",
		stored, asked, len(parts), clients.forms.count())
	return errors.Join(wrong...)
}

func (c clients) makeNamespace(ctx context.Context) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	core, err := c.of(c.protobuf, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	return core.Post().Resource("namespaces").Body(space).Do(ctx).Error()
}

func main() {
	skip := flag.Bool("skip-unknown", false, "leave out kinds without a sample: another server may have more")
	flag.Parse()
	if err := run(*skip); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
