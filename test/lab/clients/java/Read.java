import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.File;
import java.util.List;
import partner.ApiClient;
import partner.ApiException;
import partner.ApiResponse;
import partner.JSON;
import partner.api.KeysAndUsageApi;
import partner.api.ProofsApi;
import partner.api.ReviewsApi;
import partner.api.SandboxApi;
import partner.api.SystemApi;
import partner.api.VerificationApi;
import partner.model.CloseEvidence;
import partner.model.CreateReview;
import partner.model.CreateUpload;
import partner.model.Identify;
import partner.model.IdentifyDigests;
import partner.model.IdentifyDigestsDigestsInner;
import partner.model.IdentifyRequest;
import partner.model.OpenEvidence;
import partner.model.ResolveReview;
import partner.model.ReviewBindings;
import partner.model.Telemetry;
import partner.model.TelemetryEventsInner;
import partner.model.UploadPurpose;
import partner.model.Verify;

/** Calls every operation through the generated client, and prints what the client made of each answer: a line of JSON. */
final class Read {
  private interface Operation {
    ApiResponse<?> call() throws ApiException;
  }

  private static void read(String call, Operation operation) {
    var line = new JsonObject();
    line.addProperty("call", call);
    try {
      var response = operation.call();
      show(line, response.getStatusCode(), response.getData());
    } catch (ApiException refusal) {
      try {
        show(line, refusal.getCode(), partner.model.Error.fromJson(refusal.getResponseBody()));
      } catch (Exception error) {
        line.addProperty("error", refusal + "; " + error);
      }
    } catch (Exception error) {
      line.addProperty("error", error.toString());
    }
    System.out.println(line);
  }

  private static void show(JsonObject line, int status, Object body) {
    line.addProperty("status", status);
    line.add("body", JSON.getGson().fromJson(JSON.serialize(body), JsonElement.class));
  }

  private static ApiClient client(String url) {
    var client = new ApiClient();
    client.setBasePath(url);
    client.setApiKey("key");
    return client;
  }

  public static void main(String[] arguments) {
    var url = arguments[0];
    var usual = client(url);
    var verification = new VerificationApi(usual);
    var proofs = new ProofsApi(usual);
    var keys = new KeysAndUsageApi(usual);
    var reviews = new ReviewsApi(usual);
    var system = new SystemApi(usual);
    var verify = new Verify().uploadId("upl_1");

    read("verify", () -> verification.verifyWithHttpInfo(verify));
    for (var status : List.of("400", "429")) {
      var refusing = new VerificationApi(client(url + "/" + status));
      read("verify " + status, () -> refusing.verifyWithHttpInfo(verify));
    }
    var upload = new IdentifyRequest(new Identify().uploadId("upl_1"));
    read("identify", () -> verification.identifyWithHttpInfo(upload));
    var digest = new IdentifyDigestsDigestsInner().sha256("0".repeat(64));
    var digests = new IdentifyRequest(new IdentifyDigests().digests(List.of(digest)));
    var byDigest = new VerificationApi(client(url + "/digests"));
    read("identify digests", () -> byDigest.identifyWithHttpInfo(digests));
    read("createUpload", () -> verification.createUploadWithHttpInfo(UploadPurpose.VERIFY, new CreateUpload()));
    var song = new File(arguments[1]);
    read("verifyFile", () -> verification.verifyFileWithHttpInfo(song, null, null));
    read("readRecord", () -> proofs.readRecordWithHttpInfo("prf_1"));
    read("listProofs", () -> proofs.listProofsWithHttpInfo(null, null, null, null, "evidenceReport"));
    read("readProof", () -> proofs.readProofWithHttpInfo("prf_1"));
    read("eraseProof", () -> proofs.eraseProofWithHttpInfo("prf_1"));
    read("listKeys", () -> keys.listKeysWithHttpInfo(null, null));
    read("rotateKey", () -> keys.rotateKeyWithHttpInfo("rotation-of-one-key"));
    read("revokeOwnKey", () -> keys.revokeOwnKeyWithHttpInfo("key_1", null));
    read("readUsage", () -> keys.readUsageWithHttpInfo(null));
    var bindings = new ReviewBindings().creatorId("c").accountId("a").submissionId("s").trackId("t");
    var review = new CreateReview().proofId("prf_1").bindings(bindings);
    read("createReview", () -> reviews.createReviewWithHttpInfo(review, null));
    read("listReviews", () -> reviews.listReviewsWithHttpInfo(null, null, null, null));
    read("readReview", () -> reviews.readReviewWithHttpInfo("rev_1"));
    var evidence = new OpenEvidence().kind(OpenEvidence.KindEnum.SOURCE_LICENCE);
    read("openEvidence", () -> reviews.openEvidenceWithHttpInfo("rev_1", evidence));
    var accepted = new CloseEvidence().status(CloseEvidence.StatusEnum.ACCEPTED);
    read("closeEvidence", () -> reviews.closeEvidenceWithHttpInfo("rev_1", "req_1", accepted));
    var resolution = new ResolveReview().outcome(ResolveReview.OutcomeEnum.ACCEPTED);
    read("resolveReview", () -> reviews.resolveReviewWithHttpInfo("rev_1", resolution));
    read("sandboxFixtures", () -> new SandboxApi(usual).sandboxFixturesWithHttpInfo());
    var event = new TelemetryEventsInner().name(TelemetryEventsInner.NameEnum.APP_STARTED).count(1).at(1_767_225_600L);
    read("telemetry", () -> system.telemetryWithHttpInfo(new Telemetry().events(List.of(event))));
    read("health", () -> system.healthWithHttpInfo());
  }
}
