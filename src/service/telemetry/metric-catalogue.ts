import { createMetrics, type MetricDescription } from './metrics.js';

const INTRODUCTION = `# Metrics

For an operator who writes an alert or reads a dashboard. This page lists the metrics of the service, which every process
reports at \`/metrics\` of its operator listener ([monitor](monitor.md)). A gauge whose source a process does not have is
absent or 0: for example, only the process that runs the auditor reports its findings.

A counter with a closed list of labels starts at 0 for each of them, so that an alert sees the first event.

The page and the dashboards in \`deploy/grafana/dashboards/\` are made from the registry of metrics
(\`npm run build:metrics\`). Each process also reports the metrics of Node and of its operating system,
\`nodejs_*\` and \`process_*\`, of the library prom-client.

| metric | type | labels | meaning |
|---|---|---|---|
`;

/** Returns every metric that a process of any kind reports. */
export function metricCatalogue(): Promise<readonly MetricDescription[]> {
  const validity = { notBefore: 0, notAfter: 0 };
  return createMetrics({
    build: { version: '', commit: '' },
    certificates: () => [
      { certificate: 'signing', validity, warning: undefined },
      { certificate: 'tls', validity, warning: undefined },
    ],
    clocks: () => ({ processSeconds: 0, nodesSeconds: 0 }),
    processes: () => 1,
  }).describe();
}

/** Returns the Markdown of docs/operating/metrics.md. */
export async function metricsPage(): Promise<string> {
  const own = (await metricCatalogue()).filter(({ name }) => name.startsWith('takemark_'));
  const rows = own.map(({ name, type, labels, help }) => {
    const names = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${names === '' ? '' : `${names} `}| ${help} |\n`;
  });
  return INTRODUCTION + rows.sort().join('');
}
