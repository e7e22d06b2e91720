// amazon-dynamodb-lock-client of awslabs, behind the same lines of JSON as driver.ts: one order a
// line, `{"id":1,"do":"cycle","key":"k"}`, and one answer, `{"id":1,"ok":{…}}`. Times are its own.

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import com.amazonaws.services.dynamodbv2.model.LockCurrentlyUnavailableException;
import com.amazonaws.services.dynamodbv2.model.LockNotGrantedException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

public final class Driver {
  private static final Map<String, LockItem> HOLDING = new ConcurrentHashMap<>();
  private static AmazonDynamoDBLockClient client;
  private static long pollMs;

  public static void main(String[] args) throws Exception {
    Map<String, JsonNode> settings = JsonNode.parser().parse(args[1]).asObject();
    pollMs = number(settings, "pollMs");
    DynamoDbClient dynamoDB = DynamoDbClient.builder()
        .endpointOverride(URI.create(settings.get("endpoint").asString()))
        .region(Region.US_EAST_1)
        .credentialsProvider(
            StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
        .httpClientBuilder(ApacheHttpClient.builder())
        .build();
    client = new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(dynamoDB, settings.get("tableName").asString())
            .withPartitionKeyName("lease")
            .withOwnerName(args[0])
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(number(settings, "leaseMs"))
            .withHeartbeatPeriod(number(settings, "renewMs"))
            .withCreateHeartbeatBackgroundThread(true)
            .build());
    say("{\"id\":0,\"ok\":{}}");
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      Map<String, JsonNode> order = JsonNode.parser().parse(line).asObject();
      Thread thread = new Thread(() -> answer(order));
      thread.setDaemon(true);
      thread.start();
    }
    System.exit(0);
  }

  private static void answer(Map<String, JsonNode> order) {
    String id = order.get("id").asNumber();
    try {
      String ok = carryOut(order.get("do").asString(), order.get("key").asString());
      say("{\"id\":" + id + ",\"ok\":" + ok + "}");
    } catch (Exception error) {
      String said = String.valueOf(error).replaceAll("[^\\w .:,()/-]", " ");
      say("{\"id\":" + id + ",\"error\":\"" + said + "\"}");
    }
  }

  private static String carryOut(String what, String key) throws Exception {
    long from = System.nanoTime();
    switch (what) {
      case "cycle": {
        LockItem lock = client.acquireLock(attempt(key, true));
        double ms = since(from);
        long releasing = System.nanoTime();
        client.releaseLock(lock);
        return "{\"ms\":" + ms + ",\"releaseMs\":" + since(releasing) + "}";
      }
      case "tryAcquire":
        try {
          HOLDING.put(key, client.acquireLock(attempt(key, true)));
          return "{\"got\":true,\"ms\":" + since(from) + ",\"at\":" + now() + "}";
        } catch (LockCurrentlyUnavailableException | LockNotGrantedException refused) {
          return "{\"got\":false,\"ms\":" + since(from) + "}";
        }
      case "acquire":
        HOLDING.put(key, client.acquireLock(attempt(key, false)));
        return "{\"got\":true,\"ms\":" + since(from) + ",\"at\":" + now() + "}";
      case "release":
        client.releaseLock(HOLDING.remove(key));
        return "{\"ms\":" + since(from) + ",\"at\":" + now() + "}";
      default:
        throw new IllegalArgumentException(what);
    }
  }

  private static AcquireLockOptions attempt(String key, boolean once) {
    return AcquireLockOptions.builder(key)
        .withTimeUnit(TimeUnit.MILLISECONDS)
        .withRefreshPeriod(pollMs)
        .withAdditionalTimeToWaitForLock(once ? 0L : 600_000L)
        .withShouldSkipBlockingWait(once)
        .build();
  }

  private static long number(Map<String, JsonNode> settings, String name) {
    return (long) Double.parseDouble(settings.get(name).asNumber());
  }

  private static double since(long from) {
    return (System.nanoTime() - from) / 1e6;
  }

  private static String now() {
    Instant now = Instant.now();
    return String.format("%d%03d.%03d", now.getEpochSecond(), now.getNano() / 1_000_000,
        now.getNano() / 1_000 % 1_000);
  }

  private static synchronized void say(String line) {
    System.out.println(line);
  }
}
