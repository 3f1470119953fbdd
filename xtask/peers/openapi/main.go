// Reads /openapi/v2 as Go clients do: the protobuf has to say what the JSON says, word for word, and kubectl's models have to come out of it.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/util/proto"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	// Asks for protobuf only.
	document, err := client.OpenAPISchema()
	if err != nil {
		return fmt.Errorf("read the protobuf: %w", err)
	}
	request := client.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json")
	text, err := request.Do(context.Background()).Raw()
	if err != nil {
		return fmt.Errorf("ask for the JSON: %w", err)
	}
	// Refuses every member that the format does not have.
	parsed, err := openapi_v2.ParseDocument(text)
	if err != nil {
		return fmt.Errorf("read the JSON: %w", err)
	}
	if err := compare(document, parsed); err != nil {
		return err
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		return fmt.Errorf("make kubectl's models: %w", err)
	}
	fmt.Printf("%d paths and %d models, the same in protobuf and JSON\n", len(document.GetPaths().GetPath()), len(models.ListModels()))
	return nil
}

// What stands in a document, without how it was written: values of any kind are YAML inside of it.
func compare(protobuf, json *openapi_v2.Document) error {
	one, err := plain(protobuf)
	if err != nil {
		return err
	}
	other, err := plain(json)
	if err != nil {
		return err
	}
	for _, part := range []string{"paths", "definitions"} {
		mine, _ := one[part].(map[string]any)
		theirs, _ := other[part].(map[string]any)
		if len(mine) == 0 || len(mine) != len(theirs) {
			return fmt.Errorf("%s: %d in protobuf, %d in JSON", part, len(mine), len(theirs))
		}
		for name, own := range mine {
			if !reflect.DeepEqual(own, theirs[name]) {
				return fmt.Errorf("%s %s: protobuf says %v, JSON says %v", part, name, own, theirs[name])
			}
		}
	}
	if !reflect.DeepEqual(one, other) {
		return fmt.Errorf("the heads differ: %v, %v", one["info"], other["info"])
	}
	return nil
}

func plain(document *openapi_v2.Document) (map[string]any, error) {
	text, err := document.YAMLValue("")
	if err != nil {
		return nil, err
	}
	var value map[string]any
	return value, yaml.Unmarshal(text, &value)
}
