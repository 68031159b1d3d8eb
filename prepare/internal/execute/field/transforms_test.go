package field

import (
	"encoding/json"
	"testing"
)

// Whatever a list of transforms holds, that of each field is JSON.
func FuzzSplitTransforms(f *testing.F) {
	for _, text := range []string{`[{"op":"Resize","size":[24]}]`, `[{"op":"Cast","field":"x","dtype":"float32"},{"op":"Scale","field":"y","factor":2}]`, `[]`, `[{}]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		recipes, err := SplitTransforms(data)
		if err != nil {
			return
		}
		for field := range recipes {
			if !json.Valid(recipes.Of(field, false)) {
				t.Fatalf("recipe %s is not JSON", recipes.Of(field, false))
			}
		}
	})
}
