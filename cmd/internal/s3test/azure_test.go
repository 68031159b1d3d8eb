package s3test

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The emulator's public account: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
const (
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// The same by the protocol of Azure, against its emulator, if there is one.
func TestAzure(t *testing.T) {
	program := os.Getenv("AZURITE")
	if program == "" {
		t.Skip("no AZURITE=.../azurite-blob in the environment (npm install azurite)")
	}
	address := freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	cmd := exec.Command(program, "--silent", "--skipApiVersionCheck", "--blobHost", host, "--blobPort", port, "--location", t.TempDir())
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	credential, err := azblob.NewSharedKeyCredential(azureAccount, azureKey)
	require.NoError(t, err)
	client, err := azblob.NewClientWithSharedKeyCredential("http://"+address+"/"+azureAccount, credential, nil)
	require.NoError(t, err)
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
	testStore(t, func(key string) string {
		return "azblob://" + Bucket + "/" + key + "?protocol=http&localemu=true&domain=" + address
	})
}
