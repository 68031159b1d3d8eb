package transforms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/suggest"
)

// operation is what a Transform and an ArrayTransform have in common.
type operation interface{ Op() string }

// decoder makes a resolved operation of one entry of a recipe.
type decoder[T operation] func(entry []byte) (T, error)

// marshalRecipe writes a list with an object for each operation, its name under "op" and
// every effective parameter beside it.
func marshalRecipe[T operation](ops []T) ([]byte, error) {
	out := []byte{'['}
	for i, t := range ops {
		body, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("transform %s: %w", t.Op(), err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"op":"`+t.Op()+`"`...)
		if len(body) > 2 {
			out = append(out, ',')
		}
		out = append(out, body[1:]...)
	}
	return append(out, ']'), nil
}

// parseRecipe reads what marshalRecipe writes. All that is wrong is in the error.
func parseRecipe[T operation](recipe []byte, known map[string]decoder[T]) ([]T, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(recipe, &entries); err != nil {
		return nil, fmt.Errorf("transforms: the recipe is not a JSON list of objects: %w", err)
	}
	var errs []error
	ops := make([]T, 0, len(entries))
	for i, entry := range entries {
		t, err := parseEntry(entry, known)
		if err != nil {
			errs = append(errs, fmt.Errorf("recipe entry %d: %w", i+1, err))
			continue
		}
		ops = append(ops, t)
	}
	return ops, errors.Join(errs...)
}

func parseEntry[T operation](entry []byte, known map[string]decoder[T]) (t T, err error) {
	var head struct {
		Op *string `json:"op"`
	}
	if err := json.Unmarshal(entry, &head); err != nil {
		return t, err
	}
	if head.Op == nil {
		return t, errors.New(`no "op" names the transform`)
	}
	decode, ok := known[*head.Op]
	if !ok {
		return t, fmt.Errorf("unknown transform %q%s", *head.Op, suggest.Hint(*head.Op, slices.Sorted(maps.Keys(known))))
	}
	if t, err = decode(entry); err != nil {
		return t, fmt.Errorf("transform %s: %w", *head.Op, err)
	}
	return t, nil
}

// isNumber reports whether a JSON value is one.
func isNumber(v json.RawMessage) bool { return v[0] == '-' || v[0] >= '0' && v[0] <= '9' }

// decodeStrict reads an entry into the struct at t and refuses keys that it does not have. A
// number stands for the list of that number where one is wanted.
func decodeStrict(entry []byte, t any) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(entry, &keys); err != nil {
		return err
	}
	known := jsonKeys(reflect.TypeOf(t).Elem())
	delete(keys, "op")
	for key, value := range keys {
		field := slices.Index(known, key)
		if field < 0 {
			return fmt.Errorf("unknown parameter %q%s", key, suggest.Hint(key, known))
		}
		if reflect.TypeOf(t).Elem().Field(field).Type.Kind() == reflect.Slice && isNumber(value) {
			keys[key] = slices.Concat([]byte("["), value, []byte("]"))
		}
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(t)
}

func jsonKeys(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return keys
}
