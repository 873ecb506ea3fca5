/**
 * Writes the dashboards beside this file from `dashboards.mjs` and the registry of metrics. Run by
 * `npm run build:metrics`.
 */
import { writeFileSync } from 'node:fs';
import { metricCatalogue } from '../../dist/src/service/telemetry/metric-catalogue.js';
import { dashboards } from './dashboards.mjs';

for (const [file, text] of dashboards(await metricCatalogue()))
  writeFileSync(new URL(`dashboards/${file}`, import.meta.url), text);
