import { defineConfig, type UserConfig } from 'tsdown';

const config: UserConfig = defineConfig({
  entry: [
    'src/index.ts',
    'src/config/index.ts',
    'src/planners/index.ts',
    'src/state/index.ts',
    'src/journal/index.ts',
    'src/journal/memory.ts',
    'src/journal/sqlite.ts',
    'src/tools/index.ts',
    'src/model/index.ts',
    'src/model/openai-compatible.ts',
    'src/parse/index.ts',
    'src/planners/finish/finish.ts',
    'src/planners/deterministic/index.ts',
    'src/planners/graph/index.ts',
    'src/planners/rules/rules.ts',
    'src/planners/htn/index.ts',
    'src/planners/htn-model/htn-model.ts',
    'src/planners/pipeline/index.ts',
    'src/flow/index.ts',
    'src/flow/document/flow-from.ts',
    'src/testing/index.ts',
    'src/cli/main.ts',
  ],
  platform: 'node',
  target: 'node22.18',
  fixedExtension: false,
  dts: true,
  report: false,
});
export default config;
