// Command operator is an ordinary controller-runtime operator. It shows that such a program works on
// our server unchanged, and by protobuf alone: its manager, its caches of objects and of metadata, its
// lease and its events take no JSON but that of discovery.
//
// Each ConfigMap with the label peer=operator gets a finalizer, an owned Secret, an Event and, once
// all that stands, an annotation. A deleted one is let go. The last lines of output say what was
// sent in which form.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer  = "peers.sundown.dev/operator"
	label      = "peer"
	annotation = "peers.sundown.dev/done"
)

// binary takes JSON off the list of what a client accepts, and counts what is sent and answered as protobuf.
type binary struct {
	next          http.RoundTripper
	sent, answers *atomic.Int64
}

func (b binary) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasPrefix(request.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		fmt.Printf("protobuf bodies: %d\n", b.sent.Add(1))
	}
	accepted := slices.DeleteFunc(strings.Split(request.Header.Get("Accept"), ","), func(form string) bool {
		return !strings.HasPrefix(form, runtime.ContentTypeProtobuf)
	})
	if len(accepted) == 0 {
		return b.next.RoundTrip(request)
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", strings.Join(accepted, ","))
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	form := response.Header.Get("Content-Type")
	// Upstream refuses in JSON what is asked for as metadata alone.
	if response.StatusCode < http.StatusBadRequest && !strings.HasPrefix(form, runtime.ContentTypeProtobuf) {
		// A client would only try again.
		fmt.Printf("%s %s was answered as %q\n", request.Method, request.URL, form)
		os.Exit(1)
	}
	fmt.Printf("protobuf answers: %d\n", b.answers.Add(1))
	return response, nil
}

type reconciler struct {
	client.Client
	recorder events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var config corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if config.Labels[label] != "operator" {
		return ctrl.Result{}, nil
	}
	if !config.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&config, finalizer) {
			fmt.Printf("let go: %s\n", config.Name)
			return ctrl.Result{}, r.Update(ctx, &config)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&config, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &config)
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: config.Name, Namespace: config.Namespace}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, &secret, func() error {
		secret.Data = map[string][]byte{"of": []byte(config.Name)}
		return controllerutil.SetControllerReference(&config, &secret, r.Scheme())
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	if done == controllerutil.OperationResultCreated {
		r.recorder.Eventf(&config, &secret, corev1.EventTypeNormal, "Made", "Make", "made %s", secret.Name)
	}
	if config.Annotations[annotation] != "true" {
		base := config.DeepCopy()
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, annotation, "true")
		return ctrl.Result{}, r.Patch(ctx, &config, client.StrategicMergeFrom(base))
	}
	return ctrl.Result{}, nil
}

func run() error {
	log.SetLogger(zap.New())
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	var sent, answers atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return binary{next, &sent, &answers} })
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:          true,
		LeaderElectionID:        "operator.peers.sundown.dev",
		LeaderElectionNamespace: "default",
		Metrics:                 metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	reconciler := &reconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("operator")}
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}, builder.OnlyMetadata).
		Complete(reconciler)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
