/**
 * Writes operating/metrics.md from the registry of metrics. Run by `npm run build:metrics`.
 */
import { writeFileSync } from 'node:fs';
import { metricsPage } from '../dist/src/service/telemetry/metric-catalogue.js';

writeFileSync(new URL('operating/metrics.md', import.meta.url), await metricsPage());
