package kinds

import (
	"fmt"
	"slices"

	"github.com/penstock/penstock/internal/suggest"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/column"
)

// Declare returns info with the meanings that --fields and --instances give to fields: masks, boxes and keypoints
// of an image, and fields whose rows are the instances of one list. rowsOf are the names in --instances.
func Declare(info source.Info, selection string, rowsOf []string) (source.Info, error) {
	// The source's own Info must not change.
	info.Fields = slices.Clone(info.Fields)
	list, err := column.ParseFields(selection)
	if err != nil {
		return info, err
	}
	names := source.FieldNames(info.Fields)
	for _, w := range list {
		if i := slices.Index(names, w.FieldName()); i >= 0 {
			if err := w.Content.Declare(&info.Fields[i]); err != nil {
				return info, err
			}
		}
	}
	for i, f := range info.Fields { // a field of a dataset may have another name now, or be left out
		if f.Spec.Image != "" && !slices.Contains(names, f.Spec.Image) && !asks(list, f.Spec.Image) {
			at := slices.IndexFunc(info.Fields, func(g source.Field) bool { return g.Origin == f.Spec.Image })
			if info.Fields[i].Spec.Image = ""; at >= 0 {
				info.Fields[i].Spec.Image = names[at]
			}
		}
	}
	for _, name := range rowsOf {
		i := slices.Index(names, name)
		if i < 0 {
			return info, fmt.Errorf("--instances %s: there is no field %q%s", name, name, suggest.Hint(name, names))
		}
		if f := info.Fields[i]; !f.Ragged || f.IsBytes() {
			return info, fmt.Errorf("--instances %s: the field is %v, and instances need any number of rows, such as int64[*]",
				name, f.Spec)
		}
		info.Fields[i].Instances = instances
	}
	return info, nil
}

// asks reports whether --fields refers to an image field by this name.
func asks(list []column.Selection, image string) bool {
	return slices.ContainsFunc(list, func(w column.Selection) bool { return w.Content.Image == image })
}

// instances is the name of the group of fields that --instances declares.
const instances = "instances"
