package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	protobuf = "application/vnd.kubernetes.protobuf"
	json     = "application/json"
)

//go:embed samples.yaml
var samplesText []byte

var types = func() *runtime.Scheme {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensions.AddToScheme, aggregator.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(types); err != nil {
			panic(err)
		}
	}
	return types
}()

var (
	codecs     = serializer.NewCodecFactory(types)
	parameters = runtime.NewParameterCodec(types)
)

// An object of any kind.
type object interface {
	runtime.Object
	metav1.ObjectMetaAccessor
}

// Clients of each form, for any group.
type clients struct {
	protobuf, json *rest.Config
	forms          *forms
}

func newClients(config *rest.Config) clients {
	seen := &forms{}
	binary, text := rest.CopyConfig(config), rest.CopyConfig(config)
	binary.ContentType, binary.AcceptContentTypes = protobuf, protobuf
	binary.Wrap(func(next http.RoundTripper) http.RoundTripper { return checked{next, seen} })
	text.ContentType, text.AcceptContentTypes = json, json
	return clients{binary, text, seen}
}

func (c clients) of(config *rest.Config, version schema.GroupVersion) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// What came back to a client that takes protobuf only.
type forms struct {
	lock    sync.Mutex
	binary  int
	strange []error
}

func (f *forms) count() int {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.binary
}

func (f *forms) wrong() []error {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.strange
}

// checked looks at the form of each answer.
type checked struct {
	next http.RoundTripper
	seen *forms
}

func (c checked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	form := response.Header.Get("Content-Type")
	c.seen.lock.Lock()
	defer c.seen.lock.Unlock()
	if strings.HasPrefix(form, protobuf) {
		c.seen.binary++
	} else {
		c.seen.strange = append(c.seen.strange,
			fmt.Errorf("%s %s was answered as %q", request.Method, request.URL.Path, form))
	}
	return response, nil
}

func readSamples() (map[schema.GroupVersionKind]object, error) {
	samples := map[schema.GroupVersionKind]object{}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(samplesText)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		text, err = yaml.ToJSON(text)
		if err != nil {
			return nil, err
		}
		decoder := codecs.UniversalDeserializer()
		read, kind, err := decoder.Decode(bytes.TrimSpace(text), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%.80s: %w", text, err)
		}
		sample, ok := read.(object)
		if !ok {
			return nil, fmt.Errorf("%s has no metadata", kind)
		}
		if _, ok := samples[*kind]; ok {
			return nil, fmt.Errorf("%s is there twice", kind)
		}
		samples[*kind] = sample
	}
}
