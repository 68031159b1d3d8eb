package field

import (
	"bytes"
	"encoding/json"

	"github.com/penstock/penstock/prepare/source"
)

// Recipe returns the transforms of the fields, as the manifest stores them. Each entry names its field, unless the
// only field with transforms is a field of images.
func Recipe(jobs []Job, source []source.Field) (json.RawMessage, error) {
	var lists []json.RawMessage
	for i, f := range jobs {
		var p json.Marshaler
		switch f := f.(type) {
		case *imageField:
			if f.deep != nil && f.deep.array {
				continue // nothing is done to it
			}
			p = f.pipeline
		case arrayField:
			p = f.pipeline
		case *shrinkField:
			p = f.pipeline
		default:
			continue
		}
		text, err := json.Marshal(p)
		if err == nil && several(jobs, source) {
			text, err = Tagged(text, source[i].Name)
		}
		if err != nil {
			return nil, err
		}
		// Pipelines without transforms leave no entries.
		if inner := bytes.Trim(text, "[]"); len(inner) > 0 {
			lists = append(lists, text[1:len(text)-1])
		}
	}
	if lists == nil {
		return nil, nil
	}
	return append(append([]byte{'['}, bytes.Join(rawBytes(lists), []byte{','})...), ']'), nil
}

// several reports whether the entries of a recipe must name their fields.
func several(jobs []Job, source []source.Field) bool {
	images, arrays := 0, 0
	for i, f := range jobs {
		switch f.(type) {
		case *imageField, *shrinkField:
			images++
		case arrayField:
			arrays++
		default:
			if HasPixels(source[i]) {
				arrays++ // images that nothing is done to
			}
		}
	}
	return images != 1 || arrays > 0
}
