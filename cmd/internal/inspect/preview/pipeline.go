package preview

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/transforms"
)

// readPipeline reads transforms from a file in YAML or JSON: a list of transforms, or a mapping
// that has one under "transforms", as preprocess --pipeline takes it.
func readPipeline(path string) (*transforms.Pipeline, error) {
	text, err := cli.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var file any
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	list, is := file.([]any)
	if top, object := file.(map[string]any); object {
		list, is = top["transforms"].([]any)
	}
	if !is {
		return nil, fmt.Errorf("%s: %w", path, errors.New("is neither a list of transforms nor has one under transforms"))
	}
	recipe, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := transforms.Parse(recipe)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
