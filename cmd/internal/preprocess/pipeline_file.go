package preprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare"
)

// pipelineFile is the file of --pipeline, in YAML or JSON: a store.Recipe, as in a manifest, or
// parts of one.
//
//	program: penstock 1.0     # that made it, and
//	decoder: go (avx2)        # with what: for people
//	options:                  # flags without their dashes
//	  color: gray
//	  split: train=0.9,val=0.1
//	transforms:               # instead of --resize, --fit, --crop, --filter, --pass-order, --layout, --dtype
//	  - op: Resize
//	    size: [256]
//	  - op: Cast
//	    field: depth          # of this field alone; without it, of all images
//	    dtype: float32
type pipelineFile struct {
	options    map[string]string
	transforms json.RawMessage // nil if there are none
}

// pipelineKeys are the keys of the file.
var pipelineKeys = []string{"program", "decoder", "options", "transforms"}

// recipeFlags are the flags that options may have.
var recipeFlags = prepare.RecipeFlags()

// transformFlags are the flags that transforms replace.
var transformFlags = []string{"resize", "fit", "crop", "filter", "pass-order", "layout", "dtype"}

func readPipelineFile(path string) (*pipelineFile, error) {
	data, err := cli.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parsePipelineFile(data)
}

// decodeMapping reads the next document. Its errors name the lines.
func decodeMapping(d *yaml.Decoder) (doc map[string]any, err error) {
	var root yaml.Node
	err = d.Decode(&root)
	if err == io.EOF || err == nil && root.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("is not a YAML mapping of %s", strings.Join(pipelineKeys, ", "))
	}
	if err == nil {
		err = root.Decode(&doc)
	}
	if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) {
		err = errors.New("yaml: " + strings.Join(wrong.Errors, "; "))
	}
	return doc, err
}

// parsePipelineFile reads a file. Everything that is wrong with its keys is in the error.
func parsePipelineFile(data []byte) (*pipelineFile, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	doc, err := decodeMapping(d)
	if err != nil {
		return nil, err
	}
	if err := d.Decode(new(any)); err != io.EOF {
		return nil, errors.New("holds more than one document")
	}
	p := &pipelineFile{options: make(map[string]string)}
	var errs []error
	for key, value := range doc {
		switch key {
		case "program", "decoder":
		case "options":
			errs = append(errs, p.setOptions(value))
		case "transforms":
			errs = append(errs, p.setTransforms(value))
		default:
			errs = append(errs, fmt.Errorf("unknown key %q%s", key, suggest.Hint(key, pipelineKeys)))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return p, errors.Join(errs...)
}

func (p *pipelineFile) setOptions(value any) error {
	list, ok := value.(map[string]any)
	if !ok {
		return errors.New("options: must be a mapping of flags to values")
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(list)) {
		value := list[key]
		switch fixed, isFixed := prepare.FixedOptions[key]; {
		case isFixed && fmt.Sprint(value) != fixed:
			errs = append(errs, fmt.Errorf("options: %s: is always %s", key, fixed))
		case isFixed:
		case !slices.Contains(recipeFlags, key) && slices.Contains(transformFlags, key):
			errs = append(errs, fmt.Errorf("options: %s: list it under transforms instead", key))
		case !slices.Contains(recipeFlags, key):
			errs = append(errs, fmt.Errorf("options: unknown key %q%s", key, suggest.Hint(key, recipeFlags)))
		default:
			text, err := scalar(value)
			if err != nil {
				err = fmt.Errorf("options: %s: %w", key, err)
			}
			p.options[key], errs = text, append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func scalar(value any) (string, error) {
	switch value.(type) {
	case map[string]any, []any, nil:
		return "", errors.New("must be one value, as of the flag")
	}
	return fmt.Sprint(value), nil
}

// setTransforms keeps the list as JSON, which package transforms reads.
func (p *pipelineFile) setTransforms(value any) error {
	list, ok := value.([]any)
	if !ok {
		return errors.New("transforms: must be a list")
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("transforms: %w", err)
	}
	p.transforms = text
	return prepare.CheckTransforms(text)
}

// apply sets the flags that were not given on the command line, and the transforms.
func (p *pipelineFile) apply(fs *pflag.FlagSet, c *prepare.Config) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(p.options)) {
		if fs.Changed(name) {
			continue
		}
		if err := fs.Lookup(name).Value.Set(p.options[name]); err != nil {
			problems = append(problems, fmt.Sprintf("options: %s: invalid value %q", name, p.options[name]))
		}
	}
	if p.transforms == nil {
		return problems
	}
	c.Images.Transforms = p.transforms
	for _, name := range transformFlags {
		if fs.Changed(name) {
			problems = append(problems, fmt.Sprintf("the file has transforms, which --%s cannot change; change them there",
				name))
		}
	}
	return problems
}

// printPipeline writes the recipe as YAML.
func printPipeline(w io.Writer, c prepare.Config) error {
	recipe, err := c.RecipeOfImages()
	if err != nil {
		return err
	}
	data, err := json.Marshal(recipe)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	}
	blockStyle(&doc, 0)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return err
	}
	return e.Close()
}

// blockStyle takes JSON's quotes and brackets out of a document, as far down as entries of lists.
func blockStyle(n *yaml.Node, depth int) {
	n.Style = 0
	if n.Kind == yaml.SequenceNode && depth > 3 {
		n.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		blockStyle(child, depth+1)
	}
}
