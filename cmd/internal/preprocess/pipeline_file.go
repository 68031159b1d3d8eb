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

// pipelineFile is the file of --pipeline, in YAML or JSON: a store.Recipe as in a manifest, or
// parts of one. JSON needs no parser of its own, since it is YAML.
//
//	program: penstock 1.0     # which program made the dataset, and
//	decoder: go (avx2)        # which JPEG decoder, both for people only
//	options:                  # flags without their dashes
//	  color: gray
//	  split: train=0.9,val=0.1
//	transforms:               # instead of --resize, --fit, --crop, --filter, --pass-order, --layout, --dtype
//	  - op: Resize
//	    size: [256]
//	  - op: Cast
//	    field: depth          # for this field alone; without it, for all images
//	    dtype: float32
type pipelineFile struct {
	options    map[string]string
	transforms json.RawMessage // nil if there are none
}

// pipelineKeys lists the keys of the file.
var pipelineKeys = []string{"program", "decoder", "options", "transforms"}

// recipeFlags lists the flags that options may set.
var recipeFlags = prepare.RecipeFlags()

// transformFlags lists the flags that transforms replace.
var transformFlags = []string{"resize", "fit", "crop", "filter", "pass-order", "layout", "dtype"}

// readPipelineFile reads and checks the file at path.
func readPipelineFile(path string) (*pipelineFile, error) {
	data, err := cli.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parsePipelineFile(data)
}

// decodeMapping reads the next document of d as a mapping. Errors name the lines.
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

// parsePipelineFile parses a file. The error lists everything that is wrong with its keys, in the
// order of the alphabet, as the order of a Go map is random.
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

// setOptions takes the options. A fixed option of a recipe, which no flag changes, must have its
// fixed value: another value would ask for something that penstock does not do.
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

// scalar returns the text of a single value, as it would be given to a flag.
func scalar(value any) (string, error) {
	switch value.(type) {
	case map[string]any, []any, nil:
		return "", errors.New("must be one value, as of the flag")
	}
	return fmt.Sprint(value), nil
}

// setTransforms keeps the list as JSON, the form that package transforms and manifests have.
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

// apply sets the flags that the command line does not have, and the transforms of c. A flag that
// transforms replace is a problem next to them: it is not known at which place of the list the flag
// would apply.
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

// printPipeline writes the recipe of c as YAML. The recipe goes through JSON, whose keys and
// omissions are defined by its type, so that the file has the form that --pipeline and a
// manifest have.
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

// blockStyle removes JSON's quotes and brackets from a document, except for lists inside the
// entries of lists, such as size: [224, 224], which read better in one line.
func blockStyle(n *yaml.Node, depth int) {
	n.Style = 0
	if n.Kind == yaml.SequenceNode && depth > 3 {
		n.Style = yaml.FlowStyle
	}
	for _, child := range n.Content {
		blockStyle(child, depth+1)
	}
}
