package remote

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string][3]string{
		"s3://lab/a/b?region=x":      {"lab", "a/b", "s3://lab/a/b"},
		"s3://lab":                   {"lab", "", "s3://lab"},
		"gs://lab/a/":                {"lab", "a", "gs://lab/a"},
		"azblob://box/ds?localemu=1": {"box", "ds", "azblob://box/ds"},
		"file:///data/train/ds":      {"/data/train", "ds", "file:///data/train/ds"},
		"file:///ds":                 {"/", "ds", "file:///ds"},
		"file:///a/../b/../../c/ds":  {"/c", "ds", "file:///c/ds"},
		"HTTPS://host/a":             {"host", "a", "https://host/a"},
		"https://host:8443/a/b%20c/": {"host:8443", "a/b c", "https://host:8443/a/b c"},
		"hdfs://nn:8020/user/x/ds":   {"nn:8020", "user/x/ds", "hdfs://nn:8020/user/x/ds"},
		"http://host?sig=x":          {"host", "", "http://host"},

		"hf://datasets/org/name@v1.0/data/x.npy":        {"datasets/org/name@v1.0", "data/x.npy", "hf://datasets/org/name@v1.0/data/x.npy"},
		"hf://datasets/org/name/data":                   {"datasets/org/name", "data", "hf://datasets/org/name/data"},
		"hf://datasets/mnist@main/a":                    {"datasets/mnist@main", "a", "hf://datasets/mnist@main/a"},
		"hf://datasets/o/n@refs/convert/parquet/x/y":    {"datasets/o/n@refs/convert/parquet", "x/y", "hf://datasets/o/n@refs/convert/parquet/x/y"},
		"hf://datasets/o/n@refs%2Fpr%2F3/x":             {"datasets/o/n@refs/pr/3", "x", "hf://datasets/o/n@refs/pr/3/x"},
		"hf://datasets/o/n@0123456789abcdef/a%20b.json": {"datasets/o/n@0123456789abcdef", "a b.json", "hf://datasets/o/n@0123456789abcdef/a b.json"},
	} {
		u, err := ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := [3]string{u.Bucket, u.Key, u.String()}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "s3://", "s3:///key", "file://host/x", "s3://lab/x#y", "s3://lab/%zz", "s3://us er@h/", "ftp://lab/x", "https://", "https://h/a%2Fb", "hdfs:///x", "hf://models/x", "hf://datasets", "hf://datasets/a@b@c/d", "hf://t@datasets/a/b", "/data/ds", "s3://lab/x?a=%zz"} {
		if u, err := ParseURL(text); err == nil {
			t.Errorf("%q is taken: %+v", text, u)
		}
	}
}

// Secrets as they occur in URLs and messages.
var leaks = []string{
	"s3://key:hunter2@lab/x",
	"s3://lab/x?endpoint=http://user:hunter2@host:9000",
	"https://host/x?X-Amz-Signature=hunter2&X-Amz-Date=1",
	"https://host/x?sig=hunter2&se=2026",
	"azblob://c/x?sas_token=hunter2",
	`Get "https://h/x?AWSAccessKeyId=hunter2": EOF`,
	"AccountName=lab;AccountKey=hunter2;EndpointSuffix=core.windows.net",
	"Authorization: AWS4-HMAC-SHA256 Credential=hunter2/2026, Signature=hunter2",
	"authorization: Bearer hunter2hunter2",
	"https://host/x?zz=hunter2",
	"HTTPS://hunter2:hunter2@host/x?hunter2",
	"https://host/x?hunter2==",
	"https://host/x?a&hunter2=1&b=hunter2: not found",
	"s3://lab/x?region=r&other=hunter2",
	"s3://lab/x?endpoint=http://h?t=hunter2",
	"s3://lab/x?endpoint=http%3A%2F%2Fh%3Ft%3Dhunter2",
	"ftp://lab/x?a=hunter2",
	`{"secret_access_key": "hunter2"}`,
	"password=hunter2",
	"s3://lab?endpoint=http%3A%2F%2Fuser%3Ahunter2%40host%3A9000&x=1",
	"s3://user:hun/ter2@lab/x",
	"AWS_SECRET_ACCESS_KEY=hunter2",
	"host=db;pwd=hunter2;x=1",
	"https://host/x?pwd=hunter2",
	"https://host/x?sas=hunter2",
	"DB_PASS: hunter2",
	"PWD=hunter2",
	`password="correct hunter2 horse"`,
	`password = 'correct hunter2 horse'`,
	`{"client_secret": "a b, c hunter2"}`,
	`{\"refresh_token\": \"a hunter2 b\"}`,
	`{"password":"a\nb hunter2"}`,
	"passphrase: hunter2",
	"oauth2: ya29.hunter2-hunter2_x",
	"refresh 1//0hunter2hunter2-x",
	"push with ghp_hunter2hunter2hunter2",
	"got eyJhbGciOiJIUzI1NiJ9.hunter2.hunter2",
	"<Error><SecretAccessKey>hunter2</SecretAccessKey></Error>",
	"<Credentials><SessionToken>\n hunter2 \n</SessionToken></Credentials>",
	`<x:Password kind="plain">hunter2</x:Password>`,
	"<StringToSign>GET</StringToSign><SignatureProvided>hunter2</SignatureProvided>",
	"-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
	"-----BEGIN PRIVATE KEY-----\nhunter2",
}

func TestNoSecretIsTold(t *testing.T) {
	for _, text := range leaks {
		check := func(what, got string) {
			if strings.Contains(got, "hunter2") || strings.Contains(got, "ter2@") {
				t.Errorf("%s prints the secret of %q: %q", what, text, got)
			}
		}
		check("Redact", Redact(text))
		check("an error", NewError("read", text, nil, stringError(text)).Error())
		u, err := ParseURL(text)
		if err != nil {
			check("ParseURL", err.Error())
			continue
		}
		check("String", u.String())
		check("Name", u.Name())
	}
	for _, text := range []string{`https://host/x?a=b "hunter2`, "https://u:a hunter2@host/x", "https://host/x?a=<hunter2", "https://host/x?a=\nhunter2"} {
		if _, err := ParseURL(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"remote: read s3://lab/images-00000.npy: there is no such object", "NoSuchKey: The specified key does not exist.",
		"s3://lab/a@b/c.npy", "s3://lab/x?region=eu&endpoint=http://127.0.0.1:9000: not found", "is s3://lab/x there?", "tried 3 times: connection refused",
		"<Error><Code>NoSuchKey</Code><Key>a/b</Key></Error>", "pass 3 of 4", "sassafras.jpg: bypass", "the monkey ate=3",
	} {
		if got := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// The words that Redact looks for before it tries a pattern leave no match out: all patterns, tried on texts made of
// pieces of leaks, in either case and with letters beyond ASCII, give the same.
func TestRedactTriesWhatMatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	piece := func() string {
		text := leaks[rng.IntN(len(leaks))]
		first := rng.IntN(len(text))
		text = text[first : first+1+rng.IntN(len(text)-first)]
		switch rng.IntN(6) {
		case 0:
			return strings.ToUpper(text)
		case 1:
			return strings.ToLower(text)
		case 2:
			return strings.ReplaceAll(strings.ReplaceAll(text, "s", "\u017f"), "k", "\u212a")
		}
		return text
	}
	changed := 0
	for range 1000 {
		text := piece() + piece()
		want := RedactURLs(text)
		for _, s := range secrets {
			want = s.pattern.ReplaceAllString(want, s.with)
		}
		if got := Redact(text); got != want {
			t.Fatalf("%q became %q, want %q", text, got, want)
		}
		if want != text {
			changed++
		}
	}
	if changed < 200 {
		t.Errorf("only %d texts have secrets", changed)
	}
}

type stringError string

func (e stringError) Error() string { return string(e) }

func FuzzParseURL(f *testing.F) {
	for _, text := range leaks {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(u.Key, "/") || strings.HasSuffix(u.Key, "/") || u.Bucket == "" {
			t.Errorf("%q: bucket %q, key %q", text, u.Bucket, u.Key)
		}
		if pass, ok := u.user.Password(); ok && len(pass) > 8 && strings.Contains(u.String()+u.Name(), pass) && !strings.Contains(u.Bucket+u.Key, pass) {
			t.Errorf("%q prints its password: %q", text, u)
		}
	})
}
