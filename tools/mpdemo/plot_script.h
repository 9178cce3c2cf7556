// gnuplot code of plots.cpp: the preamble, and the two pictures of one outcome.
//
// It reads variables that plots.cpp writes before it: id (of the file names), heading, num_runs,
// last_flushed, and the arrays name, log2_scale, flushed_dw and flushed_dz, by run.
#pragma once

namespace mpdemo {

constexpr const char *kScriptStart =
    R"gnuplot(# Draws the plots of mpdemo from the .dat files in the same folder:  gnuplot plots.gp
set terminal pngcairo size 1200,700 font 'Sans,12' enhanced
set border 3 lc rgb '#555555'
set tics nomirror out
set format '%h'
set grid ytics lc rgb '#e4e4e4' lt 1 lw 1

# Colors of Okabe and Ito, which are safe for color blindness.  FP32 is the broad gray line, which
# the other lines should cover.
set linetype 1 lc rgb '#bbbbbb' lw 7
set linetype 2 lc rgb '#0072B2' lw 3
set linetype 3 lc rgb '#009E73' lw 1.5
set linetype 4 lc rgb '#D55E00' lw 2 dt (8,5)
set linetype 5 lc rgb '#CC79A7' lw 1.5

# Exponents at which fp16 changes: <= 2^-25 rounds to 0, subnormal below 2^-14, infinite from 2^16.
log2_flush = -25
log2_subnormal = -14
log2_overflow = 16
)gnuplot";

constexpr const char *kGradientPicture = R"gnuplot(
# Distribution of the gradients of the FP32 run, multiplied by the scale S of each mixed run.
set output id.'_gradients.png'
set multiplot layout 2,1 title heading.': gradients in the range of fp16' font 'Sans,15' noenhanced \
    margins 0.07,0.74,0.10,0.86 spacing 0.0,0.13
unset logscale
unset yrange
set xrange [-56:22]
set xtics 5
set key at screen 0.755,graph 0.95 left top Left reverse spacing 2.8 samplen 2
set object 1 rectangle from graph 0,graph 0 to log2_flush,graph 1 behind fs solid noborder fc rgb '#fae0d8'
set object 2 rectangle from log2_flush,graph 0 to log2_subnormal,graph 1 behind fs solid noborder fc rgb '#fdf5d9'
set object 3 rectangle from log2_overflow,graph 0 to graph 1,graph 1 behind fs solid noborder fc rgb '#fae0d8'
set style fill transparent solid 0.25
do for [panel = 1:2] {
  set title (panel == 1 ? 'weight gradients dW' : 'activation gradients dz') offset 0,0.9
  set xlabel (panel == 1 ? '' : 'log_2 |S g|')
  set ylabel '% of nonzero values'
  set label 1 'rounds to 0 (up to 2^{-25})' at (-56 + log2_flush) / 2.0, graph 1.05 center tc rgb '#a03c14'
  set label 2 'subnormal (to 2^{-14})' at (log2_flush + log2_subnormal) / 2.0, graph 1.05 center tc rgb '#806000'
  set label 3 'full precision' at (log2_subnormal + log2_overflow) / 2.0, graph 1.05 center tc rgb '#555555'
  set label 4 'infinite' at (log2_overflow + 22) / 2.0, graph 1.05 center tc rgb '#a03c14'
  plot for [run = 2:last_flushed] id.'_gradients.dat' using ($1 + log2_scale[run]):(column(panel + 1)) \
      with fillsteps lt run notitle, \
    for [run = 2:last_flushed] '' using ($1 + log2_scale[run]):(column(panel + 1)) with steps lt run \
      title sprintf("%s\nS = 2^{%d}: %.1f %% round to 0", name[run], log2_scale[run], \
                    panel == 1 ? flushed_dw[run] : flushed_dz[run])
}
unset multiplot
unset object
unset label
)gnuplot";

constexpr const char *kTrainingPicture = R"gnuplot(
# Training loss and scale S by step.
set output id.'_training.png'
set multiplot layout 2,1 title heading.': loss and loss scale' font 'Sans,15' noenhanced \
    margins 0.07,0.80,0.10,0.92 spacing 0.0,0.08
unset title
set key at screen 0.815,graph 1 left top Left reverse spacing 1.4 samplen 2
set xrange [0:*] noextend
set xtics auto
set xlabel ''
set ylabel 'training loss'
set logscale y
set yrange [*:*] noextend
set ytics (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 50, 100)
plot for [run = 1:num_runs] id.'_training.dat' index run - 1 using 1:2 with lines lt run title name[run]
unset logscale y
set ytics auto
set xlabel 'step'
set ylabel 'log_2 S'
set yrange [-1:*]
plot for [run = 2:num_runs] id.'_training.dat' index run - 1 using 1:3 with steps lt run title name[run]
unset multiplot
)gnuplot";

}  // namespace mpdemo
