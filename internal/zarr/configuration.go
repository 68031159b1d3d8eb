package zarr

import (
	"encoding/json"
)

// codec is the configuration of a codec of version 3. A codec of version 2 is given that form, with its id as the name.
type codec struct {
	Name   string          `json:"name"`
	Config json.RawMessage `json:"configuration"`
}

// UnmarshalJSON accepts a name alone, too.
func (c *codec) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &c.Name)
	}
	type plain codec
	return json.Unmarshal(text, (*plain)(c))
}
