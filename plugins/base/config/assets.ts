// Files that are read and not compiled: icons, templates.
import { readFile } from 'node:fs/promises'
import { packagePath } from '../../../package.ts'

/** The absolute path of an asset, whether or not there is one. @param name its path below `assets/`, for example `icons/tool-hub.svg` */
export function assetPath (name: string): string {
  return packagePath(`assets/${name}`)
}

/** The text of an asset. @throws as `readFile` when there is none */
export const readAsset = async (name: string): Promise<string> => await readFile(assetPath(name), 'utf8')
