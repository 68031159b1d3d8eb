package report

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestValuesAreEscaped(t *testing.T) {
	var b body
	b.Add(`<p title="{}">{} {}</p>`, `"><script>`, "a&b\x00", 3)
	b.Add(`{}`, markup("<b>"))
	var page strings.Builder
	require.NoError(t, writePage(&page, "</title>", "p { color: red; }", &b))
	for _, want := range []string{
		`<p title="&#34;&gt;&lt;script&gt;">a&amp;b\x00 3</p><b>`, "<title>&lt;/title&gt;</title>", "p { color: red; }\n</style>", "<main>\n<p",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in %s", want, &page)
		}
	}
}

func TestCountOfValues(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a value for nothing is taken")
		}
	}()
	new(body).Add("<p>{}</p>", 1, 2)
}
