package yolo

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
)

// config is the contents of the YAML file.
type config struct {
	path    string // of the folder that places are in
	splits  []split
	classes []string
	points  int // keypoints of an object
	numbers int // that each of them has: 2 or 3
}

// split is a split and where its images are.
type split struct {
	name   string
	places []string
}

// maxConfig is the most bytes of a YAML file.
const maxConfig = 16 << 20

func readConfig(file string) (c config, err error) {
	text, err := source.File(file).Bytes(nil)
	if err != nil {
		return c, err
	}
	if len(text) > maxConfig {
		return c, fmt.Errorf("has %d bytes, more than %d", len(text), maxConfig)
	}
	var y struct {
		Path   string    `yaml:"path"`
		Train  yaml.Node `yaml:"train"`
		Val    yaml.Node `yaml:"val"`
		Test   yaml.Node `yaml:"test"`
		Names  yaml.Node `yaml:"names"`
		Points []int     `yaml:"kpt_shape"`
	}
	if err := yaml.Unmarshal(text, &y); err != nil {
		return c, fmt.Errorf("is not YAML of the expected form: %w", err)
	}
	c.path = y.Path
	for name, node := range map[string]*yaml.Node{"train": &y.Train, "val": &y.Val, "test": &y.Test} {
		places, err := placesOf(node)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		if len(places) > 0 {
			c.splits = append(c.splits, split{name, places})
		}
	}
	if len(c.splits) == 0 {
		return c, errors.New("names no images: it has none of train, val and test")
	}
	slices.SortFunc(c.splits, func(a, b split) int { return source.CompareSplits(a.name, b.name) })
	if c.classes, err = classesOf(&y.Names); err != nil {
		return c, fmt.Errorf("names: %w", err)
	}
	if len(y.Points) > 0 {
		if len(y.Points) != 2 || y.Points[0] < 1 || y.Points[0] > 1<<16 || y.Points[1] != 2 && y.Points[1] != 3 {
			return c, fmt.Errorf("kpt_shape is %v; it is a number of points, and 2 or 3", y.Points)
		}
		c.points, c.numbers = y.Points[0], y.Points[1]
	}
	return c, nil
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
		var byNumber map[int]string
		if err = n.Decode(&byNumber); err != nil {
			return nil, err
		}
		list = make([]string, len(byNumber))
		for i, name := range byNumber {
			if i < 0 || i >= len(list) {
				return nil, fmt.Errorf("class %d of %d; numbers begin with 0 and have no gaps", i, len(list))
			}
			list[i] = name
		}
	case 0:
	default:
		err = errors.New("is neither a list nor names by their numbers")
	}
	return list, err
}

// base returns the folder that places are in: path, if it is set, otherwise that of the file.
func (c config) base(root string) string {
	path := filepath.FromSlash(c.path)
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	if info, err := vfs.Stat(path); path != "" && err == nil && info.IsDir() {
		return path
	}
	return root
}
