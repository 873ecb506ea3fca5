// Calls every operation through the generated client, and prints what the client made of each answer: a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"read/partner"
)

func show(call string, response *http.Response, body any, err error) {
	line := map[string]any{"call": call}
	var refused *partner.GenericOpenAPIError
	if errors.As(err, &refused) && refused.Model() != nil {
		body, err = refused.Model(), nil
	}
	if err != nil {
		line["error"] = err.Error()
	} else {
		line["status"], line["body"] = response.StatusCode, body
	}
	text, err := json.Marshal(line)
	if err != nil {
		text, _ = json.Marshal(map[string]any{"call": call, "error": err.Error()})
	}
	fmt.Println(string(text))
}

type request[Body any] interface {
	Execute() (Body, *http.Response, error)
}

func read[Body any](call string, asked request[Body]) {
	body, response, err := asked.Execute()
	show(call, response, body, err)
}

func song() *os.File {
	file, err := os.Open(os.Args[2])
	if err != nil {
		panic(err)
	}
	return file
}

func client(url string) *partner.APIClient {
	configuration := partner.NewConfiguration()
	configuration.Servers = partner.ServerConfigurations{{URL: url}}
	configuration.AddDefaultHeader("x-api-key", "key")
	return partner.NewAPIClient(configuration)
}

func main() {
	url := os.Args[1]
	ctx := context.Background()
	usual := client(url)
	verify := *partner.NewVerify("upl_1")
	read("verify", usual.VerificationAPI.Verify(ctx).Verify(verify))
	for _, status := range []string{"400", "429"} {
		read("verify "+status, client(url+"/"+status).VerificationAPI.Verify(ctx).Verify(verify))
	}
	upload := partner.IdentifyRequest{Identify: partner.NewIdentify("upl_1")}
	read("identify", usual.VerificationAPI.Identify(ctx).IdentifyRequest(upload))
	digest := *partner.NewIdentifyDigestsDigestsInner(strings.Repeat("0", 64))
	list := partner.NewIdentifyDigests([]partner.IdentifyDigestsDigestsInner{digest})
	digests := partner.IdentifyRequest{IdentifyDigests: list}
	read("identify digests", client(url+"/digests").VerificationAPI.Identify(ctx).IdentifyRequest(digests))
	read("createUpload", usual.VerificationAPI.CreateUpload(ctx).CreateUpload(*partner.NewCreateUpload()))
	post := usual.VerificationAPI.PostUpload(ctx, "upl_1").Policy("given").Signature("given")
	read("postUpload", post.File(song()))
	read("verifyFile", usual.VerificationAPI.VerifyFile(ctx).File(song()))
	read("readRecord", usual.ProofsAPI.ReadRecord(ctx, "prf_1"))
	read("listProofs", usual.ProofsAPI.ListProofs(ctx).Include("evidenceReport"))
	read("readProof", usual.ProofsAPI.ReadProof(ctx, "prf_1"))
	read("eraseProof", usual.ProofsAPI.EraseProof(ctx, "prf_1"))
	read("listKeys", usual.KeysAndUsageAPI.ListKeys(ctx))
	read("rotateKey", usual.KeysAndUsageAPI.RotateKey(ctx).IdempotencyKey("rotation-of-one-key"))
	read("revokeOwnKey", usual.KeysAndUsageAPI.RevokeOwnKey(ctx, "key_1"))
	read("readUsage", usual.KeysAndUsageAPI.ReadUsage(ctx))
	bindings := *partner.NewReviewBindings("c", "a", "s", "t")
	review := *partner.NewCreateReview("prf_1", bindings)
	read("createReview", usual.ReviewsAPI.CreateReview(ctx).CreateReview(review))
	read("listReviews", usual.ReviewsAPI.ListReviews(ctx))
	read("readReview", usual.ReviewsAPI.ReadReview(ctx, "rev_1"))
	evidence := *partner.NewOpenEvidence("source_licence")
	read("openEvidence", usual.ReviewsAPI.OpenEvidence(ctx, "rev_1").OpenEvidence(evidence))
	accepted := *partner.NewCloseEvidence("accepted")
	read("closeEvidence", usual.ReviewsAPI.CloseEvidence(ctx, "rev_1", "req_1").CloseEvidence(accepted))
	resolution := *partner.NewResolveReview("accepted")
	read("resolveReview", usual.ReviewsAPI.ResolveReview(ctx, "rev_1").ResolveReview(resolution))
	read("sandboxFixtures", usual.SandboxAPI.SandboxFixtures(ctx))
	event := *partner.NewTelemetryEventsInner("app_started", 1, 1767225600)
	telemetry := *partner.NewTelemetry([]partner.TelemetryEventsInner{event})
	read("telemetry", usual.SystemAPI.Telemetry(ctx).Telemetry(telemetry))
	read("health", usual.SystemAPI.Health(ctx))
}
