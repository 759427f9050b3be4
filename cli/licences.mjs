import { readdirSync, readFileSync } from 'node:fs'

/**
 * Collects the licences of the packages whose sources are in bundles.
 * @param inputs the paths of all bundled files, relative to `root`
 * @param root the path of the folder of package.json, with a slash at the end
 * @returns one text with the name, version, licence and notices of each package
 */
export function licencesOf (inputs, root) {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []))
  const texts = new Map([...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8'))
    const notices = readdirSync(`${root}${folder}`).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file)).sort()
      .map((file) => readFileSync(`${root}${folder}/${file}`, 'utf8').trim())
    return [`${name} ${version}`, [`${name} ${version} (${license})`, ...notices].join('\n\n')]
  }))
  return [...texts].sort(([one], [other]) => one < other ? -1 : 1).map(([, text]) => text)
    .join(`\n\n${'-'.repeat(80)}\n\n`) + '\n'
}
