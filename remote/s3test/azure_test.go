package s3test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/remote/cloud"
	"github.com/penstock/penstock/remote/mirror"
)

// What everybody knows of the emulator: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
const (
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// The same by the protocol of Azure, against its emulator, if there is one.
func TestTrainFromAzure(t *testing.T) {
	program := os.Getenv("AZURITE")
	if program == "" {
		t.Skip("no AZURITE=.../azurite-blob in the environment (npm install azurite)")
	}
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--silent", "--skipApiVersionCheck", "--blobHost", host, "--blobPort", port, "--location", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	credential, err := azblob.NewSharedKeyCredential(azureAccount, azureKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/"+azureAccount, credential, nil)
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		if _, err = client.CreateContainer(t.Context(), Bucket, nil); err == nil {
			break
		}
		if time.Since(began) > 60*time.Second {
			t.Fatal(err)
		}
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", azureAccount)
	t.Setenv("AZURE_STORAGE_KEY", azureKey)
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, 500, 64, 64)
	url := "azblob://" + Bucket + "/sets/train?protocol=http&localemu=true&domain=" + address
	b, u, err := cloud.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	upload(t, b, dir, u.Key)
	local, err := mmapds.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	d := openURL(t, url, mirror.Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	opts := loader.Options{BatchSize: 32, Order: loader.Shuffle{}}
	want, _ := digest(t, local, opts, 0)
	if got, _ := digest(t, d, opts, 0); got != want {
		t.Error("other bytes than from the local dataset")
	}
}
