package field

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/transforms"
)

// fieldTransforms are the entries of a recipe by the field that they name, "" for none.
type fieldTransforms map[string][]json.RawMessage

// SplitTransforms divides a recipe by field, and removes the names of fields from the entries.
func SplitTransforms(recipe json.RawMessage) (fieldTransforms, error) {
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, errors.New("transforms: every entry must be a mapping with an op")
	}
	out := make(fieldTransforms)
	for i, e := range entries {
		field := ""
		if text, ok := e["field"]; ok && json.Unmarshal(text, &field) != nil {
			return nil, fmt.Errorf("transforms: entry %d: field must be a name", i+1)
		}
		delete(e, "field")
		text, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("transforms: entry %d: %w", i+1, err)
		}
		out[field] = append(out[field], text)
	}
	return out, nil
}

// Of returns the recipe of a field, nil if the field has no transforms. An image without entries of its own
// takes the entries that name no field.
func (t fieldTransforms) Of(field string, image bool) json.RawMessage {
	list := t[field]
	if list == nil && image {
		list = t[""]
	}
	if list == nil {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']')
}

// rawBytes returns the entries as slices of bytes.
func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, e := range list {
		out[i] = e
	}
	return out
}

// Tagged adds the name of a field to every entry of a recipe.
func Tagged(recipe json.RawMessage, field string) (json.RawMessage, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, err
	}
	name, err := json.Marshal(field)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		entries[i] = append(append(append([]byte(`{"field":`), name...), ','), e[1:]...)
	}
	return json.Marshal(entries)
}

// isImageRecipe reports whether a recipe is for images, and not for arrays of numbers.
func isImageRecipe(recipe json.RawMessage) bool {
	_, err := transforms.ParseArray(recipe)
	return err != nil
}
