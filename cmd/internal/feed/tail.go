package feed

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/views"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// head returns the first transforms of the pipeline of a field of image files, whose results the
// cache can store, and remembers the rest in o.tails. path is the dataset's.
func (o *Options) head(path, field string) (*transforms.Pipeline, error) {
	p, err := o.divisible(path, field)
	if err != nil {
		return nil, err
	}
	head, rest, err := p.Split()
	if err != nil {
		return nil, err
	}
	recipe, err := json.Marshal(rest)
	if o.tails == nil {
		o.tails = make(map[string]*tail)
	}
	o.tails[field] = &tail{recipe: recipe, whole: loader.Images{Pipeline: p}.ID()}
	return head, err
}

// divisible returns the pipeline of a field if its result depends on the image file alone.
// Otherwise it returns the reason why pixels cannot be stored.
func (o *Options) divisible(path, field string) (*transforms.Pipeline, error) {
	recipe, _ := o.recipe(field)
	parts, err := splitRecipe(recipe)
	switch {
	case recipe == nil:
		return nil, fmt.Errorf("the field %q has no transforms", field)
	case err != nil:
		return nil, err
	case len(parts) > 1:
		return nil, fmt.Errorf("the transforms of the field %q have a function of yours", field)
	case views.Is(path):
		return nil, errors.New("it is part of a view")
	case o.Pack != nil || o.Sampler.measures(field):
		return nil, fmt.Errorf("the order, or rows, depend on the lengths of records of the field %q", field)
	case len(o.Contents) > 0:
		return nil, errors.New("contents or independent say how other fields lie on the image")
	case o.padding(store.NewField(field, 0)) != nil:
		return nil, errors.New("PadToLargest pads images of several sizes")
	}
	return transforms.Parse(recipe)
}
