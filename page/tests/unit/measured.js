/**
 * Messages at sizes that the reference run has not measured: instructions of the work, by configuration.
 *
 *     stablebench run users --rows ROWS --payload PAYLOAD --batches N --at middle,end --rules 2026-08
 */
export const MEASURED = [
  {
    at: { n: 5, payload: 300, rows: 200_000, place: "middle" },
    instructions: { btree: 1_583_789, "sqlite/persist": 4_425_401, "sqlite/memory": 5_687_183, "sqlite/off": 4_033_729, "sqlite/wal": 4_264_067, "sqlite-vfs": 5_440_640, append: 163_879, array: 163_462 },
  },
  {
    at: { n: 5, payload: 300, rows: 200_000, place: "end" },
    instructions: { btree: 1_993_365, "sqlite/persist": 2_905_760, "sqlite/memory": 2_778_627, "sqlite/off": 2_675_812, "sqlite/wal": 3_158_355, "sqlite-vfs": 3_107_977, append: 163_879, array: 163_462 },
  },
  {
    at: { n: 3, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 2_313_759, "sqlite/persist": 4_492_273, "sqlite/memory": 4_795_552, "sqlite/off": 3_700_542, "sqlite/wal": 3_851_487, "sqlite-vfs": 4_527_603, append: 165_951, array: 165_544 },
  },
  {
    at: { n: 20, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 4_169_166, "sqlite/persist": 71_700_739, "sqlite/memory": 71_230_757, "sqlite/off": 70_011_890, "sqlite/wal": 70_536_410, "sqlite-vfs": 45_182_928, append: 184_039, array: 183_547 },
  },
  {
    at: { n: 300, payload: 1000, rows: 50_000, place: "middle" },
    instructions: { btree: 30_870_597, "sqlite/persist": 90_374_460, "sqlite/memory": 87_372_831, "sqlite/off": 83_829_394, "sqlite/wal": 86_319_341, "sqlite-vfs": 59_852_439, append: 1_122_071, array: 1_920_067 },
  },
  {
    at: { n: 3, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 2_889_202, "sqlite/persist": 3_180_920, "sqlite/memory": 3_517_496, "sqlite/off": 2_763_351, "sqlite/wal": 2_959_329, "sqlite-vfs": 3_696_376, append: 165_951, array: 325_656 },
  },
  {
    at: { n: 20, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 5_947_957, "sqlite/persist": 3_555_587, "sqlite/memory": 3_888_411, "sqlite/off": 3_133_946, "sqlite/wal": 3_791_212, "sqlite-vfs": 4_356_354, append: 184_039, array: 343_659 },
  },
  {
    at: { n: 300, payload: 1000, rows: 50_000, place: "end" },
    instructions: { btree: 42_482_336, "sqlite/persist": 13_787_182, "sqlite/memory": 14_157_966, "sqlite/off": 12_972_658, "sqlite/wal": 14_267_202, "sqlite-vfs": 12_231_640, append: 1_122_071, array: 2_080_179 },
  },
  {
    at: { n: 5, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 1_130_302, "sqlite/persist": 4_115_824, "sqlite/memory": 4_576_429, "sqlite/off": 3_484_132, "sqlite/wal": 3_314_518, "sqlite-vfs": 3_728_088, append: 162_319, array: 161_902 },
  },
  {
    at: { n: 40, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 2_914_979, "sqlite/persist": 4_579_171, "sqlite/memory": 5_039_752, "sqlite/off": 3_947_701, "sqlite/wal": 3_778_087, "sqlite-vfs": 4_134_121, append: 165_959, array: 165_367 },
  },
  {
    at: { n: 400, payload: 40, rows: 300_000, place: "middle" },
    instructions: { btree: 21_490_179, "sqlite/persist": 29_763_265, "sqlite/memory": 28_949_216, "sqlite/off": 28_288_156, "sqlite/wal": 28_443_584, "sqlite-vfs": 28_427_544, append: 203_399, array: 201_007 },
  },
  {
    at: { n: 5, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 1_253_897, "sqlite/persist": 2_660_912, "sqlite/memory": 2_933_728, "sqlite/off": 2_110_794, "sqlite/wal": 2_273_284, "sqlite-vfs": 2_299_160, append: 162_319, array: 161_902 },
  },
  {
    at: { n: 40, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 3_873_034, "sqlite/persist": 3_954_890, "sqlite/memory": 4_592_103, "sqlite/off": 3_270_262, "sqlite/wal": 3_323_365, "sqlite-vfs": 3_155_411, append: 165_959, array: 165_367 },
  },
  {
    at: { n: 400, payload: 40, rows: 300_000, place: "end" },
    instructions: { btree: 28_897_215, "sqlite/persist": 9_001_909, "sqlite/memory": 9_716_053, "sqlite/off": 8_477_512, "sqlite/wal": 8_671_912, "sqlite-vfs": 8_473_514, append: 203_399, array: 361_119 },
  },
];

/** Messages at further sizes, measured when the estimates were final. */
export const MEASURED_LATER = [
  {
    at: { n: 50, payload: 600, rows: 100_000, place: "middle" },
    instructions: { btree: 5_376_180, "sqlite/delete": 95_610_646, "sqlite/truncate": 96_822_759, "sqlite/persist": 95_450_394, "sqlite/memory": 95_474_879, "sqlite/off": 93_581_967, "sqlite/wal": 93_988_162, "sqlite-vfs": 46_106_761, append: 355_671, array: 354_917 },
  },
  {
    at: { n: 50, payload: 600, rows: 100_000, place: "end" },
    instructions: { btree: 8_291_782, "sqlite/delete": 4_418_220, "sqlite/truncate": 6_592_982, "sqlite/persist": 4_338_208, "sqlite/memory": 5_690_894, "sqlite/off": 3_646_162, "sqlite/wal": 4_527_162, "sqlite-vfs": 4_724_743, append: 355_671, array: 355_029 },
  },
  {
    at: { n: 400, payload: 80, rows: 150_000, place: "middle" },
    instructions: { btree: 21_618_421, "sqlite/delete": 29_018_487, "sqlite/truncate": 30_391_591, "sqlite/persist": 29_018_475, "sqlite/memory": 28_135_125, "sqlite/off": 27_356_078, "sqlite/wal": 28_398_656, "sqlite-vfs": 26_589_936, append: 379_551, array: 377_047 },
  },
  {
    at: { n: 400, payload: 80, rows: 150_000, place: "end" },
    instructions: { btree: 28_810_194, "sqlite/delete": 9_983_215, "sqlite/truncate": 12_098_252, "sqlite/persist": 9_983_203, "sqlite/memory": 10_084_408, "sqlite/off": 9_296_019, "sqlite/wal": 9_965_844, "sqlite-vfs": 8_631_091, append: 379_551, array: 377_159 },
  },
  {
    at: { n: 7, payload: 200, rows: 400_000, place: "middle" },
    instructions: { btree: 1_449_444, "sqlite/delete": 5_012_476, "sqlite/truncate": 7_511_380, "sqlite/persist": 5_012_464, "sqlite/memory": 5_713_491, "sqlite/off": 4_380_678, "sqlite/wal": 3_890_688, "sqlite-vfs": 4_985_081, append: 163_807, array: 163_380 },
  },
  {
    at: { n: 7, payload: 200, rows: 400_000, place: "end" },
    instructions: { btree: 2_271_359, "sqlite/delete": 3_255_109, "sqlite/truncate": 6_066_835, "sqlite/persist": 3_255_097, "sqlite/memory": 3_208_300, "sqlite/off": 2_785_061, "sqlite/wal": 2_467_453, "sqlite-vfs": 2_978_366, append: 163_807, array: 163_380 },
  },
  {
    at: { n: 2, payload: 400, rows: 700_000, place: "middle" },
    instructions: { btree: 1_652_862, "sqlite/delete": 4_613_348, "sqlite/truncate": 7_274_840, "sqlite/persist": 4_613_336, "sqlite/memory": 5_795_525, "sqlite/off": 3_981_993, "sqlite/wal": 6_564_851, "sqlite-vfs": 4_879_361, append: 163_087, array: 162_685 },
  },
  {
    at: { n: 2, payload: 400, rows: 700_000, place: "end" },
    instructions: { btree: 2_180_659, "sqlite/delete": 2_943_182, "sqlite/truncate": 5_756_175, "sqlite/persist": 2_943_170, "sqlite/memory": 3_456_995, "sqlite/off": 2_312_737, "sqlite/wal": 5_227_947, "sqlite-vfs": 2_824_222, append: 163_087, array: 162_685 },
  },
];

/**
 * Messages of several operations: instructions of the work, the mean of 20 messages one after the other, by configuration.
 *
 *     stablebench run mix --insert N --read N --update N --delete N --scan N --rows ROWS --payload PAYLOAD --at PLACE --rules 2026-10
 */
export const MIXES = [
  {
    mix: { insert: 5, read: 0, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 3_967_305, "sqlite/persist": 9_501_250, "sqlite/persist,cache_size=1000": 8_330_625, "sqlite/wal": 7_529_068, "sqlite/memory": 12_833_110, "sqlite/off": 8_180_852, "sqlite-vfs": 14_415_647 },
  },
  {
    mix: { insert: 5, read: 20, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 11_753_212, "sqlite/persist": 18_823_321, "sqlite/persist,cache_size=1000": 11_798_837, "sqlite/wal": 16_726_534, "sqlite/memory": 20_390_778, "sqlite/off": 17_318_496, "sqlite-vfs": 20_267_177 },
  },
  {
    mix: { insert: 5, read: 20, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 9_051_581, "sqlite/persist": 20_348_991, "sqlite/persist,cache_size=1000": 12_197_629, "sqlite/wal": 18_317_261, "sqlite/memory": 23_926_828, "sqlite/off": 18_709_926, "sqlite-vfs": 20_176_142 },
  },
  {
    mix: { insert: 5, read: 20, update: 5, delete: 2, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 14_410_832, "sqlite/persist": 24_739_754, "sqlite/persist,cache_size=1000": 14_608_568, "sqlite/wal": 21_548_125, "sqlite/memory": 28_790_203, "sqlite/off": 22_969_749, "sqlite-vfs": 23_834_902 },
  },
  {
    mix: { insert: 1, read: 3, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 2_374_292, "sqlite/persist": 6_572_153, "sqlite/persist,cache_size=1000": 4_732_506, "sqlite/wal": 5_631_527, "sqlite/memory": 7_564_516, "sqlite/off": 5_744_285, "sqlite-vfs": 6_904_001 },
  },
  {
    mix: { insert: 0, read: 20, update: 0, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 9_202_358, "sqlite/persist": 11_363_973, "sqlite/persist,cache_size=1000": 5_578_630, "sqlite/wal": 11_862_927, "sqlite/memory": 11_232_182, "sqlite/off": 11_654_730, "sqlite-vfs": 5_940_743 },
  },
  {
    mix: { insert: 10, read: 100, update: 10, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 7_121_466, "sqlite/persist": 43_078_857, "sqlite/persist,cache_size=1000": 6_627_805, "sqlite/wal": 42_039_767, "sqlite/memory": 45_472_473, "sqlite/off": 41_870_892, "sqlite-vfs": 12_901_945 },
  },
  {
    mix: { insert: 0, read: 5, update: 1, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 3_815_457, "sqlite/persist": 5_838_184, "sqlite/persist,cache_size=1000": 3_903_308, "sqlite/wal": 6_119_513, "sqlite/memory": 5_412_208, "sqlite/off": 5_597_508, "sqlite-vfs": 5_739_709 },
  },
  {
    mix: { insert: 20, read: 10, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "end" },
    instructions: { btree: 3_802_253, "sqlite/persist": 3_908_370, "sqlite/persist,cache_size=1000": 3_616_540, "sqlite/wal": 3_653_807, "sqlite/memory": 4_224_763, "sqlite/off": 3_477_813, "sqlite-vfs": 4_019_529 },
  },
  {
    mix: { insert: 0, read: 10, update: 0, delete: 0, scan: 2, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 5_800_189, "sqlite/persist": 8_899_459, "sqlite/persist,cache_size=1000": 5_382_789, "sqlite/wal": 9_170_729, "sqlite/memory": 8_891_213, "sqlite/off": 9_107_695, "sqlite-vfs": 6_228_428 },
  },
  {
    mix: { insert: 50, read: 200, update: 50, delete: 50, scan: 0, rows: 1_000_000, payload: 100, place: "random" },
    instructions: { btree: 119_586_260, "sqlite/persist": 181_977_931, "sqlite/persist,cache_size=1000": 66_220_418, "sqlite/wal": 178_890_347, "sqlite/memory": 177_701_603, "sqlite/off": 170_369_035, "sqlite-vfs": 164_379_927 },
  },
  {
    mix: { insert: 2, read: 0, update: 0, delete: 2, scan: 0, rows: 50_000, payload: 1_000, place: "random" },
    instructions: { btree: 12_010_555, "sqlite/persist": 7_363_807, "sqlite/persist,cache_size=1000": 5_680_497, "sqlite/wal": 5_801_442, "sqlite/memory": 8_845_132, "sqlite/off": 6_353_812, "sqlite-vfs": 7_710_062 },
  },
  {
    mix: { insert: 3, read: 40, update: 3, delete: 0, scan: 0, rows: 500_000, payload: 200, place: "random" },
    instructions: { btree: 16_405_590, "sqlite/persist": 28_255_818, "sqlite/persist,cache_size=1000": 13_246_268, "sqlite/wal": 26_117_067, "sqlite/memory": 29_441_522, "sqlite/off": 27_154_302, "sqlite-vfs": 23_283_071 },
  },
  {
    mix: { insert: 0, read: 50, update: 0, delete: 5, scan: 0, rows: 100_000, payload: 100, place: "random" },
    instructions: { btree: 13_899_808, "sqlite/persist": 14_767_114, "sqlite/persist,cache_size=1000": 10_303_853, "sqlite/wal": 13_921_737, "sqlite/memory": 13_912_515, "sqlite/off": 13_817_436, "sqlite-vfs": 18_222_239 },
  },
  {
    mix: { insert: 30, read: 30, update: 0, delete: 0, scan: 0, rows: 300_000, payload: 150, place: "end" },
    instructions: { btree: 5_596_069, "sqlite/persist": 4_157_732, "sqlite/persist,cache_size=1000": 4_021_922, "sqlite/wal": 4_129_416, "sqlite/memory": 4_884_371, "sqlite/off": 4_433_926, "sqlite-vfs": 6_081_066 },
  },
  {
    mix: { insert: 2, read: 10, update: 2, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 2_292_378, "sqlite/persist": 11_496_465, "sqlite/persist,cache_size=1000": 3_748_644, "sqlite/wal": 10_943_545, "sqlite/memory": 12_396_450, "sqlite/off": 10_821_240, "sqlite-vfs": 4_377_958 },
  },
  {
    mix: { insert: 8, read: 15, update: 4, delete: 0, scan: 0, rows: 400_000, payload: 100, place: "random" },
    instructions: { btree: 8_979_849, "sqlite/persist": 23_377_321, "sqlite/persist,cache_size=1000": 14_367_785, "sqlite/wal": 19_803_261, "sqlite/memory": 23_769_180, "sqlite/off": 20_997_160, "sqlite-vfs": 32_683_824 },
  },
  {
    mix: { insert: 0, read: 30, update: 10, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "middle" },
    instructions: { btree: 3_196_554, "sqlite/persist": 4_754_823, "sqlite/persist,cache_size=1000": 3_848_372, "sqlite/wal": 3_998_139, "sqlite/memory": 6_218_974, "sqlite/off": 3_474_329, "sqlite-vfs": 6_422_003 },
  },
  {
    mix: { insert: 60, read: 50, update: 0, delete: 0, scan: 0, rows: 1_000_000, payload: 100, place: "end" },
    instructions: { btree: 9_050_426, "sqlite/persist": 5_239_303, "sqlite/persist,cache_size=1000": 4_936_024, "sqlite/wal": 4_886_662, "sqlite/memory": 5_864_206, "sqlite/off": 4_682_637, "sqlite-vfs": 8_053_309 },
  },
];

/** Further mixes, measured when the estimates were final. */
export const MIXES_LATER = [
  {
    mix: { insert: 4, read: 25, update: 2, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "middle" },
    instructions: { btree: 3_588_944, "sqlite/persist": 29_267_826, "sqlite/persist,cache_size=1000": 6_262_643, "sqlite/wal": 28_996_203, "sqlite/memory": 30_150_086, "sqlite/off": 28_601_943, "sqlite-vfs": 9_007_560 },
  },
  {
    mix: { insert: 2, read: 12, update: 0, delete: 0, scan: 1, rows: 400_000, payload: 100, place: "random" },
    instructions: { btree: 5_821_990, "sqlite/persist": 12_636_296, "sqlite/persist,cache_size=1000": 7_963_625, "sqlite/wal": 11_389_002, "sqlite/memory": 13_008_896, "sqlite/off": 11_453_927, "sqlite-vfs": 11_381_215 },
  },
  {
    mix: { insert: 15, read: 5, update: 0, delete: 0, scan: 0, rows: 400_000, payload: 100, place: "end" },
    instructions: { btree: 2_917_520, "sqlite/persist": 3_723_964, "sqlite/persist,cache_size=1000": 3_232_041, "sqlite/wal": 3_043_568, "sqlite/memory": 3_722_156, "sqlite/off": 3_127_810, "sqlite-vfs": 3_298_198 },
  },
  {
    mix: { insert: 1, read: 8, update: 1, delete: 0, scan: 0, rows: 200_000, payload: 300, place: "random" },
    instructions: { btree: 5_710_542, "sqlite/persist": 9_769_582, "sqlite/persist,cache_size=1000": 6_196_920, "sqlite/wal": 8_967_386, "sqlite/memory": 10_694_889, "sqlite/off": 9_250_271, "sqlite-vfs": 8_872_571 },
  },
];
