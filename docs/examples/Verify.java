import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Verifies an audio file: {@code java Verify.java FILE} (Java 17 or newer), with TAKEMARK_URL and TAKEMARK_API_KEY in the
 * environment. Prints the service's answer in one line. Exit codes: 0 accepted, 1 not accepted, 2 wrong use, 3 no
 * answer, and 4 where the credential holds and a person is to look at its evidence.
 */
public final class Verify {
  private static final int ATTEMPTS = 5;
  private static final long LONGEST_PAUSE_SECONDS = 60;

  // It follows no redirects: one would carry the key along.
  private final HttpClient client = HttpClient.newHttpClient();
  private final String base;
  private final String key;

  private Verify(String base, String key) {
    this.base = base;
    this.key = key;
  }

  private interface Call {
    HttpResponse<String> send() throws IOException, InterruptedException;
  }

  /**
   * Keys and audio travel over TLS, or do not leave this machine. The name localhost is refused: it may mean ::1, where
   * another user of this machine can listen.
   */
  private static URI protect(String address) {
    URI uri = URI.create(address);
    String host = uri.getHost() == null ? "" : uri.getHost();
    boolean loopback = host.matches("127(\\.\\d{1,3}){3}|\\[::1\\]");
    if (!("https".equals(uri.getScheme()) && !host.isEmpty()) && !("http".equals(uri.getScheme()) && loopback))
      throw new IllegalArgumentException("plain HTTP is for loopback addresses alone");
    return uri;
  }

  private HttpRequest request(Path audio) throws IOException {
    String mark = UUID.randomUUID().toString();
    String head =
        "--" + mark + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio\"\r\n"
            + "Content-Type: application/octet-stream\r\n\r\n";
    return HttpRequest.newBuilder(protect(base + "/v1/verifications"))
        .timeout(Duration.ofMinutes(5))
        .header("x-api-key", key)
        // All attempts have the same key, so the call is billed once.
        .header("Idempotency-Key", UUID.randomUUID().toString())
        .header("Content-Type", "multipart/form-data; boundary=" + mark)
        .POST(
            BodyPublishers.concat(
                BodyPublishers.ofString(head),
                BodyPublishers.ofFile(audio),
                BodyPublishers.ofString("\r\n--" + mark + "--\r\n")))
        .build();
  }

  /** Repeats a call that was refused for now, after the pause that the service asks for. */
  private static String retrying(Call call) throws IOException, InterruptedException {
    for (int attempt = 1; ; attempt += 1) {
      HttpResponse<String> answer = call.send();
      int status = answer.statusCode();
      if (status / 100 == 2) return answer.body();
      String asked = answer.headers().firstValue("Retry-After").orElse("");
      long pause = asked.matches("\\d{1,9}") ? Long.parseLong(asked) : 1L << attempt;
      if ((status != 429 && status != 503) || attempt == ATTEMPTS || pause > LONGEST_PAUSE_SECONDS)
        throw new IOException("refused with " + status + ": " + answer.body());
      Thread.sleep(pause * 1000);
    }
  }

  private String verify(Path audio) throws IOException, InterruptedException {
    HttpRequest request = request(audio);
    return retrying(() -> client.send(request, BodyHandlers.ofString()));
  }

  /** What is not known today, a new verdict or status, is not accepted. */
  private static int outcome(Object answer) {
    Map<?, ?> result = (Map<?, ?>) answer;
    if (!"valid".equals(result.get("verdict")) || !Boolean.TRUE.equals(result.get("good"))) return 1;
    Object status = result.get("decision") instanceof Map<?, ?> decision ? decision.get("status") : null;
    if ("verified_binding".equals(status)) return 0;
    return "needs_review".equals(status) ? 4 : 1;
  }

  private static int run(String[] arguments) {
    String base = System.getenv().getOrDefault("TAKEMARK_URL", "").replaceAll("/+$", "");
    String key = System.getenv().getOrDefault("TAKEMARK_API_KEY", "");
    try {
      if (arguments.length != 1 || base.isEmpty() || key.isEmpty())
        throw new IllegalArgumentException("usage: TAKEMARK_URL=... TAKEMARK_API_KEY=... java Verify.java FILE");
      // The error for a header that cannot be sent would show the key.
      if (!key.matches("[\\x21-\\x7e]+"))
        throw new IllegalArgumentException("TAKEMARK_API_KEY must be printable ASCII without spaces or line breaks");
      protect(base);
      Path audio = Path.of(arguments[0]);
      if (!Files.isReadable(audio)) throw new IllegalArgumentException(audio + " cannot be read");
      String answer = new Verify(base, key).verify(audio);
      int outcome = outcome(Json.read(answer));
      // A string of JSON holds no line break.
      System.out.println(answer.replaceAll("[\\r\\n]+\\s*", ""));
      return outcome;
    } catch (IllegalArgumentException error) {
      System.err.println(error.getMessage());
      return 2;
    } catch (IOException | InterruptedException | RuntimeException error) {
      System.err.println(error);
      return 3;
    }
  }

  public static void main(String[] arguments) {
    System.exit(run(arguments));
  }

  /** A reader of JSON, which Java's own library lacks: maps, lists, strings, doubles, booleans and null. */
  private static final class Json {
    private final String text;
    private int at;

    private Json(String text) {
      this.text = text;
    }

    static Object read(String text) throws IOException {
      Json json = new Json(text);
      try {
        Object value = json.value();
        if (json.next() == '\0') return value;
      } catch (RuntimeException broken) {
        throw new IOException("the answer is not JSON", broken);
      }
      throw new IOException("the answer is not JSON");
    }

    private char next() {
      while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at += 1;
      return at < text.length() ? text.charAt(at) : '\0';
    }

    private boolean take(char wanted) {
      boolean there = next() == wanted;
      if (there) at += 1;
      return there;
    }

    private void need(char wanted) {
      if (!take(wanted)) throw new IllegalStateException();
    }

    private Object value() {
      if (next() == '"') return string();
      if (take('{')) {
        Map<String, Object> members = new HashMap<>();
        for (boolean more = !take('}'); more; ) {
          String name = string();
          need(':');
          members.put(name, value());
          more = take(',');
          if (!more) need('}');
        }
        return members;
      }
      if (take('[')) {
        List<Object> entries = new ArrayList<>();
        for (boolean more = !take(']'); more; ) {
          entries.add(value());
          more = take(',');
          if (!more) need(']');
        }
        return entries;
      }
      int start = at;
      while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) at += 1;
      String word = text.substring(start, at);
      return switch (word) {
        case "true" -> Boolean.TRUE;
        case "false" -> Boolean.FALSE;
        case "null" -> null;
        default -> Double.valueOf(word);
      };
    }

    private String string() {
      need('"');
      StringBuilder letters = new StringBuilder();
      for (char letter; (letter = text.charAt(at++)) != '"'; ) {
        if (letter == '\\') {
          letter = text.charAt(at++);
          int escape = "bfnrt".indexOf(letter);
          if (escape >= 0) letter = "\b\f\n\r\t".charAt(escape);
          if (letter == 'u') letter = (char) Integer.parseInt(text.substring(at, at += 4), 16);
        }
        letters.append(letter);
      }
      return letters.toString();
    }
  }
}
