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

// yoloConfig is the contents of the YAML file.
type yoloConfig struct {
	path    string // of the folder that places are in
	splits  []yoloSplit
	classes []string
	points  int // keypoints of an object
	numbers int // that each of them has: 2 or 3
}

// yoloSplit is a split and where its images are.
type yoloSplit struct {
	name   string
	places []string
}

// maxYOLO is the most bytes of a YAML file.
const maxYOLO = 16 << 20

// readConfig reads Ultralytics' YAML: path, the places of splits, names of classes, and the shape of keypoints. It
// reads these keys only and ignores download, whose value is a script.
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

// entriesOf returns the values of some keys of a YAML file; one that is missing is the zero Node. The yaml package
// would compare each key of an object with each other one.
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

// resolvedNode returns the value that an alias stands for.
func resolvedNode(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// placesOf reads one place or a list of them.
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

// classesOf reads a list of names, or names by their numbers, which begin with 0.
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

// base returns the folder that the paths of splits are relative to: the entry path, if it is set, otherwise the folder
// of the file.
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
