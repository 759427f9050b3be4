// A process that writes to a settings file without end. It is meant to be killed.
import { JsonFileStore } from '../../db/json/file.ts'
import { writeOnWord } from './endless-writes.ts'

const [path = ''] = process.argv.slice(2)

writeOnWord(async (warn) => new JsonFileStore(path, warn))
