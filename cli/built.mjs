// The script `prestart` of package.json: checks that the build exists.
import { existsSync } from 'node:fs'

if (!existsSync(new URL('../dist/server.js', import.meta.url))) {
  console.error('There is no dist/ yet. Run "npm ci && npm run build", or copy dist/ from another build.')
  process.exit(1)
}
