// `prestart` of package.json: says how to get what `npm start` runs.
import { existsSync } from 'node:fs'

if (!existsSync(new URL('../dist/server.js', import.meta.url))) {
  console.error('There is no dist/ yet. To get it: run "npm ci && npm run build", or copy dist/ from where it was built.')
  process.exit(1)
}
