package labels

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// yoloConfig has the settings that are used of the YAML file.
type yoloConfig struct {
	path    string // folder that places are relative to
	splits  []yoloSplit
	classes []string
	points  int // keypoints of an object; 0 for none
	numbers int // numbers of a keypoint: 2, or 3 with visibility
}

// yoloSplit is a split and the places of its images.
type yoloSplit struct {
	name   string
	places []string
}

// maxYOLO limits the size of a YAML file, in bytes.
const maxYOLO = 16 << 20

// readConfig reads the YAML file of Ultralytics: path, the places of splits, class names, and the shape of
// keypoints. Other keys are ignored; the value of download is a script.
func readConfig(root *vfs.Root, file string) (c yoloConfig, err error) {
	text, err := root.ReadFile(file, nil, maxYOLO)
	if err != nil {
		return c, source.WithoutPath(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return c, fmt.Errorf("is not YAML of the expected form: %w", err)
	}
	keys, err := entriesOf(&document, "path", "train", "val", "test", "names", "kpt_shape")
	if err != nil {
		return c, fmt.Errorf("is not YAML of the expected form: %w", err)
	}
	if err := keys["path"].Decode(&c.path); err != nil {
		return c, fmt.Errorf("path: %w", err)
	}
	for _, name := range []string{"train", "val", "test"} {
		places, err := placesOf(keys[name])
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		if len(places) > 0 {
			c.splits = append(c.splits, yoloSplit{name, places})
		}
	}
	// Ultralytics requires train and val; here one split is enough.
	if len(c.splits) == 0 {
		return c, errors.New("names no images: it has none of train, val and test")
	}
	slices.SortFunc(c.splits, func(a, b yoloSplit) int { return source.CompareSplits(a.name, b.name) })
	if c.classes, err = classesOf(keys["names"]); err != nil {
		return c, fmt.Errorf("names: %w", err)
	}
	var points []int
	if err := keys["kpt_shape"].Decode(&points); err != nil {
		return c, fmt.Errorf("kpt_shape: %w", err)
	}
	if len(points) > 0 {
		if len(points) != 2 || points[0] < 1 || points[0] > 1<<16 || points[1] != 2 && points[1] != 3 {
			return c, fmt.Errorf("kpt_shape is %v; it is a number of points, and 2 or 3", points)
		}
		c.points, c.numbers = points[0], points[1]
	}
	return c, nil
}

// entriesOf returns the values of some keys at the top of a YAML file; a missing key has the zero Node. Decoding
// into a map is not used, as the yaml package compares each key with every other key, which takes long for hostile
// files.
func entriesOf(document *yaml.Node, names ...string) (map[string]*yaml.Node, error) {
	found := make(map[string]*yaml.Node, len(names))
	for _, name := range names {
		found[name] = new(yaml.Node)
	}
	if document.Kind == 0 {
		return found, nil
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("it is not an object")
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		name, value := top.Content[i].Value, resolvedNode(top.Content[i+1])
		if found[name] == nil {
			continue
		}
		if found[name].Kind != 0 {
			return nil, fmt.Errorf("line %d: it has %q twice", top.Content[i].Line, name)
		}
		found[name] = value
	}
	return found, nil
}

// resolvedNode returns the node that an alias refers to, and any other node itself.
func resolvedNode(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// placesOf reads a place, or a list of places.
func placesOf(n *yaml.Node) (list []string, err error) {
	switch n.Kind {
	case yaml.SequenceNode:
		err = n.Decode(&list)
	case yaml.ScalarNode:
		var one string
		if err = n.Decode(&one); one != "" {
			list = []string{one}
		}
	case 0:
	default:
		err = errors.New("is neither a path nor a list of paths")
	}
	return list, err
}

// classesOf reads the class names: a list, or a mapping from numbers to names. The numbers must be 0 to n-1, as
// they are the positions of the classes.
func classesOf(n *yaml.Node) (list []string, err error) {
	switch n.Kind {
	case yaml.SequenceNode:
		err = n.Decode(&list)
	case yaml.MappingNode:
		list = make([]string, len(n.Content)/2)
		known := make([]bool, len(list))
		for i := 0; i+1 < len(n.Content); i += 2 {
			var class int
			if err = n.Content[i].Decode(&class); err != nil {
				return nil, err
			}
			if class < 0 || class >= len(list) || known[class] {
				return nil, fmt.Errorf("class %d of %d; numbers begin with 0 and have no gaps", class, len(list))
			}
			if err = n.Content[i+1].Decode(&list[class]); err != nil {
				return nil, err
			}
			known[class] = true
		}
	case 0:
	default:
		err = errors.New("is neither a list nor names by their numbers")
	}
	return list, err
}

// base returns the folder that the places of splits are relative to: the value of path if that folder exists,
// otherwise the folder of the YAML file. Datasets are often moved without a change of path.
func (s *yoloSet) base() string {
	path := filepath.FromSlash(s.config.path)
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	if path == "" {
		return s.dir
	}
	if source.IsDir(s.root, path) {
		return path
	}
	return s.dir
}
