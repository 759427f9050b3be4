// The script `prepare` of package.json: builds after `npm ci`. Without the bundler (`npm ci --omit=dev`), it prints a
// hint and succeeds, except before `npm pack`: a tarball without the build would have no program.
import { execSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)
const has = (name) => existsSync(new URL(name, root))
if (has('node_modules/esbuild/package.json')) execSync('npm run build', { cwd: fileURLToPath(root), stdio: 'inherit' })
else if (!has('dist/server.js')) {
  console.error(
    'Nothing was built, since esbuild is not installed. Run "npm ci && npm run build" (then, if you like, ' +
    '"npm prune --omit=dev"), or copy dist/ from another build, or install a tarball from "npm pack".'
  )
  if (['pack', 'publish'].includes(process.env.npm_command)) process.exitCode = 1
}
