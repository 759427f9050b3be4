// What pages of the console do beside showing and sending forms. Without it they do the same, by whole pages.
import 'htmx.org'
import { showWork } from './busy.ts'
import { copyOnClick } from './copy.ts'
import { followTrials } from './follow.ts'
import { followStream } from './live.ts'
import { answerWhole } from './swaps.ts'
import { chooseTheme } from './theme.ts'
import { showTimes } from './times.ts'

document.documentElement.classList.remove('no-script')
const stream = document.body.dataset.liveStream
if (stream !== undefined) followStream(stream)
copyOnClick()
followTrials()
showWork()
chooseTheme()
answerWhole()
showTimes()
