// Builds the files that browsers load for the console: style, script and icons, with a hash in their names.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { build } from 'esbuild'

/** The names of the icons that the console uses, from the package lucide-static. */
const icons = [
  'activity', 'archive', 'boxes', 'chart-column', 'check', 'chevron-left', 'chevron-right', 'circle-alert', 'circle-check', 'circle-off',
  'circle-question-mark', 'copy', 'download', 'external-link', 'file', 'gauge', 'history', 'hourglass', 'info', 'key-round',
  'layout-dashboard', 'loader-circle', 'lock-open', 'log-in', 'log-out', 'menu', 'monitor', 'moon', 'play', 'plus', 'power', 'puzzle',
  'refresh-cw', 'scale', 'scan-search', 'scroll-text', 'search', 'server', 'settings', 'shield-check', 'sun', 'trash-2', 'triangle-alert',
  'upload', 'users', 'wrench', 'x'
]

/**
 * Bundles the style and the script of the console into `folder`, and writes the icons and `manifest.json` there.
 * @param root the path of the folder of package.json, with a slash at the end
 * @param folder the target folder, relative to `root`, such as `dist/console`
 * @returns the names of the files: `{ css, js, icons }`
 */
export async function buildConsoleAssets (root, folder) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['assets/console/console.css', 'assets/console/client/console.ts'],
    entryNames: '[name]-[hash]',
    outdir: folder,
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    legalComments: 'linked',
    metafile: true,
    logLevel: 'warning'
  })
  const nameOf = (ending) => basename(Object.keys(metafile.outputs).find((path) => path.endsWith(ending)))
  const sprite = await spriteOf(root)
  const hash = createHash('sha256').update(sprite).digest('hex').slice(0, 8)
  const names = { css: nameOf('.css'), js: nameOf('.js'), icons: `icons-${hash}.svg` }
  await writeFile(`${root}${folder}/${names.icons}`, sprite)
  await writeFile(`${root}${folder}/manifest.json`, JSON.stringify(names))
  return names
}

/** Returns the icons as the symbols of one SVG document. The page sets their colour and line width. */
async function spriteOf (root) {
  const symbols = await Promise.all(icons.map(async (name) => {
    const svg = await readFile(`${root}node_modules/lucide-static/icons/${name}.svg`, 'utf8')
    const shapes = svg.slice(svg.indexOf('>', svg.indexOf('<svg')) + 1, svg.lastIndexOf('</svg>')).replace(/\s*\n\s*/g, '')
    return `<symbol id="${name}" viewBox="0 0 24 24">${shapes}</symbol>`
  }))
  const notice = '<!-- lucide, ISC licence -->'
  return `${notice}<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>\n`
}
